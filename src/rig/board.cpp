#include "rig/board.h"

#include <opencv2/calib3d.hpp>
#include <opencv2/features2d.hpp>
#include <opencv2/imgproc.hpp>

#include "core/check.h"
#include "rig/charuco.h"

namespace nmrf {
namespace {

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

bool circles(const cv::Mat& grey, const cv::Size& size, std::vector<cv::Point2f>& centres) {
  const int flags = cv::CALIB_CB_ASYMMETRIC_GRID | cv::CALIB_CB_CLUSTERING;
  return cv::findCirclesGrid(grey, size, centres, flags);
}

// Another size of the board that is found in the image, "7x5"; empty: none.
std::string other_size(const cv::Mat& grey, const Board& board) {
  cv::Mat small = grey;
  const double scale = 800.0 / std::max(grey.cols, grey.rows);
  if (scale < 1) cv::resize(grey, small, cv::Size(), scale, scale, cv::INTER_AREA);
  auto found = [&](const cv::Size& size) {
    std::vector<cv::Point2f> points;
    if (size == cv::Size(board.columns, board.rows)) return false;
    if (board.kind == BoardKind::kCircles) return circles(small, size, points);
    return cv::findChessboardCornersSB(small, size, points, cv::CALIB_CB_NORMALIZE_IMAGE);
  };
  auto text = [](const cv::Size& size) { return fmt::format("{}x{}", size.width, size.height); };
  if (const cv::Size turned(board.rows, board.columns); found(turned)) return text(turned);
  // Larger ones first: a part of a board is a board as well.
  for (int rows = board.rows + 3; rows >= std::max(3, board.rows - 3); --rows)
    for (int columns = board.columns + 3; columns >= std::max(3, board.columns - 3); --columns)
      if (const cv::Size size(columns, rows); found(size)) return text(size);
  return {};
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
  check(is_charuco_dictionary(dictionary), ErrorKind::kUsage, "dictionary '{}'; expected one of {}",
        dictionary, charuco_dictionaries());
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
    case BoardKind::kCircles:
      return circles(grey, size, points) ? whole(std::move(points)) : BoardView();
    case BoardKind::kCharuco:
      return find_charuco(grey, board);
  }
  return {};
}

std::string board_doubt(const cv::Mat& grey, const Board& board) {
  if (board.kind == BoardKind::kCharuco) return charuco_doubt(grey, board);
  const std::string size = other_size(grey, board);
  if (size.empty()) return "";
  return fmt::format("shows a board of {} {}: try --board {}", size,
                     board.kind == BoardKind::kCircles ? "circles" : "inner corners", size);
}

}  // namespace nmrf
