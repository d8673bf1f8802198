#include "rig/board.h"

#include <array>
#include <opencv2/aruco/charuco.hpp>
#include <opencv2/calib3d.hpp>
#include <opencv2/features2d.hpp>
#include <opencv2/imgproc.hpp>

#include "core/check.h"

namespace nmrf {
namespace {

struct NamedDictionary {
  const char* name;
  cv::aruco::PREDEFINED_DICTIONARY_NAME value;
};
constexpr std::array<NamedDictionary, 9> kDictionaries{{{"4x4_50", cv::aruco::DICT_4X4_50},
                                                        {"4x4_100", cv::aruco::DICT_4X4_100},
                                                        {"4x4_250", cv::aruco::DICT_4X4_250},
                                                        {"5x5_50", cv::aruco::DICT_5X5_50},
                                                        {"5x5_100", cv::aruco::DICT_5X5_100},
                                                        {"5x5_250", cv::aruco::DICT_5X5_250},
                                                        {"6x6_50", cv::aruco::DICT_6X6_50},
                                                        {"6x6_100", cv::aruco::DICT_6X6_100},
                                                        {"6x6_250", cv::aruco::DICT_6X6_250}}};

const NamedDictionary* find_dictionary(const std::string& name) {
  for (const auto& entry : kDictionaries)
    if (name == entry.name) return &entry;
  return nullptr;
}

BoardView whole(std::vector<cv::Point2f> points) {
  BoardView view;
  view.points = std::move(points);
  for (int i = 0; i < static_cast<int>(view.points.size()); ++i) view.ids.push_back(i);
  return view;
}

bool chessboard(const cv::Mat& grey, const cv::Size& size, std::vector<cv::Point2f>& corners) {
  const int flags = cv::CALIB_CB_NORMALIZE_IMAGE | cv::CALIB_CB_ACCURACY;
  return cv::findChessboardCornersSB(grey, size, corners, flags);
}

BoardView charuco(const cv::Mat& grey, const Board& board) {
  const auto dictionary =
      cv::aruco::getPredefinedDictionary(find_dictionary(board.dictionary)->value);
  const double marker = board.marker > 0 ? board.marker : 0.75 * board.square;
  const auto layout = cv::aruco::CharucoBoard::create(board.columns + 1, board.rows + 1,
                                                      static_cast<float>(board.square),
                                                      static_cast<float>(marker), dictionary);
  std::vector<std::vector<cv::Point2f>> markers;
  std::vector<int> ids;
  cv::aruco::detectMarkers(grey, dictionary, markers, ids);
  BoardView view;
  if (ids.empty()) return view;
  cv::aruco::interpolateCornersCharuco(markers, ids, grey, layout, view.points, view.ids);
  return view;
}

}  // namespace

void Board::validate() const {
  check(columns >= 3 && rows >= 3 && columns <= 100 && rows <= 100, ErrorKind::kUsage,
        "a board of {}x{}; expected at least 3x3 inner corners (or circles), such as 9x6", columns,
        rows);
  check(square > 0 && square < 10, ErrorKind::kUsage,
        "squares of {} m; expected metres, such as 0.025", square);
  check(marker >= 0 && marker < square, ErrorKind::kUsage,
        "markers of {} m in squares of {} m; they must be smaller", marker, square);
  std::string known;
  for (const auto& entry : kDictionaries)
    known += std::string(known.empty() ? "" : ", ") + entry.name;
  check(find_dictionary(dictionary) != nullptr, ErrorKind::kUsage,
        "dictionary '{}'; expected one of {}", dictionary, known);
}

cv::Point3f Board::point(int i) const {
  const int row = i / columns, column = i % columns;
  const double x = kind == BoardKind::kCircles ? (2 * column + row % 2) * square : column * square;
  return {static_cast<float>(x), static_cast<float>(row * square), 0};
}

BoardView find_board(const cv::Mat& grey, const Board& board) {
  const cv::Size size(board.columns, board.rows);
  std::vector<cv::Point2f> points;
  switch (board.kind) {
    case BoardKind::kChessboard:
      return chessboard(grey, size, points) ? whole(std::move(points)) : BoardView();
    case BoardKind::kCircles: {
      const int flags = cv::CALIB_CB_ASYMMETRIC_GRID | cv::CALIB_CB_CLUSTERING;
      return cv::findCirclesGrid(grey, size, points, flags) ? whole(std::move(points))
                                                            : BoardView();
    }
    case BoardKind::kCharuco:
      return charuco(grey, board);
  }
  return {};
}

std::string other_chessboard(const cv::Mat& grey, const Board& board) {
  cv::Mat small = grey;
  const double scale = 800.0 / std::max(grey.cols, grey.rows);
  if (scale < 1) cv::resize(grey, small, cv::Size(), scale, scale, cv::INTER_AREA);
  // Larger ones first: a part of a board is a board as well.
  for (int rows = board.rows + 3; rows >= std::max(3, board.rows - 3); --rows)
    for (int columns = board.columns + 3; columns >= std::max(3, board.columns - 3); --columns) {
      std::vector<cv::Point2f> points;
      if ((rows != board.rows || columns != board.columns) &&
          cv::findChessboardCornersSB(small, {columns, rows}, points, cv::CALIB_CB_NORMALIZE_IMAGE))
        return fmt::format("{}x{}", columns, rows);
    }
  return {};
}

}  // namespace nmrf
