// Rendered boards: the calibration must find the rig that saw them.
#include "rig/calibrate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <opencv2/aruco/charuco.hpp>
#include <opencv2/imgproc.hpp>

#include "core/rng.h"
#include "geometry/rig_render.h"
#include "nmrf/opencv.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::crooked_rig;
using test::error_of;

// What is printed on a board, with a white margin; the origin is its middle.
std::function<double(double, double)> print_of(const Board& board) {
  const double s = board.square;
  if (board.kind == BoardKind::kCircles) {
    const double width = 2 * board.columns * s, height = (board.rows - 1) * s;
    return [=](double u, double v) {
      u += width / 2 - s / 2, v += height / 2;
      if (u < -2 * s || v < -2 * s || u > width + s || v > height + 2 * s) return -1.0;
      const int row = static_cast<int>(std::lround(v / s));
      const int column = static_cast<int>(std::lround((u / s - std::abs(row % 2)) / 2));
      const bool any = row >= 0 && row < board.rows && column >= 0 && column < board.columns;
      const double du = u - (2 * column + row % 2) * s, dv = v - row * s;
      return any && std::hypot(du, dv) < 0.55 * s ? 20.0 : 235.0;
    };
  }
  const int columns = board.columns + 1, rows = board.rows + 1;
  cv::Mat picture;
  constexpr int kCell = 24;  // px per square
  if (board.kind == BoardKind::kCharuco) {
    const auto dictionary = cv::aruco::getPredefinedDictionary(cv::aruco::DICT_4X4_50);
    cv::aruco::CharucoBoard::create(columns, rows, static_cast<float>(s),
                                    static_cast<float>(0.75 * s), dictionary)
        ->draw({columns * kCell, rows * kCell}, picture, 0, 1);
  } else {
    picture.create(rows * kCell, columns * kCell, CV_8UC1);
    for (int y = 0; y < picture.rows; ++y)
      for (int x = 0; x < picture.cols; ++x)
        picture.at<std::uint8_t>(y, x) = (x / kCell + y / kCell) % 2 ? 235 : 20;
  }
  return [=](double u, double v) {
    u += columns * s / 2, v += rows * s / 2;
    if (u < -s || v < -s || u > (columns + 1) * s || v > (rows + 1) * s) return -1.0;
    if (u < 0 || v < 0 || u >= columns * s || v >= rows * s) return 235.0;
    return static_cast<double>(
        picture.at<std::uint8_t>(static_cast<int>(v / s * kCell), static_cast<int>(u / s * kCell)));
  };
}

struct Shots {
  std::vector<BoardPair> pairs;
  std::vector<Image> left, right;
};

// The board at `count` places, tilted by up to `tilt` radians.
Shots take(const StereoRig& rig, const Board& board, int count, double tilt,
           const StereoRig* other = nullptr) {
  const test::TestCamera left(rig.left, rotation_matrix({}), {});
  const test::TestCamera right(rig.right, rig.rotation, rig.translation);
  const test::TestCamera elsewhere(rig.right, other ? other->rotation : rig.rotation,
                                   other ? other->translation : rig.translation);
  const auto print = print_of(board);
  Shots shots;
  Rng rng(5);
  auto random = [&](double size) { return size * (2 * rng.uniform() - 1); };
  auto grey = [](const Image& image) {
    cv::Mat result;
    cv::cvtColor(mat(const_cast<Image&>(image)), result, cv::COLOR_RGB2GRAY);
    return result;
  };
  for (int i = 0; i < count; ++i) {
    const double z = 0.5 + 0.25 * rng.uniform();
    test::Flat flat{rotation_matrix({random(tilt), random(tilt), random(0.3)}),
                    {0.05 + random(0.14) * z, random(0.12) * z, z},
                    print};
    shots.left.push_back(left.render({flat}));
    shots.right.push_back((other && i == 2 ? elsewhere : right).render({flat}));
    shots.pairs.push_back({fmt::format("{}", i), find_board(grey(shots.left.back()), board),
                           find_board(grey(shots.right.back()), board)});
  }
  return shots;
}

const cv::Size kSize(480, 360);

void expect_found(const RigCalibration& found, const StereoRig& rig, double turned = 0.004) {
  const double baseline = length(rig.translation);
  EXPECT_NEAR(length(found.rig.translation), baseline, 0.005 * baseline);
  EXPECT_NEAR(found.rig.left.fx, rig.left.fx, 0.01 * rig.left.fx);
  EXPECT_LT(found.rms, 0.3);
  EXPECT_LT(found.vertical_after, 0.3);
  EXPECT_GT(found.vertical_before, 3);
  const Vector3 off = rotation_vector(product(found.rig.rotation, transposed(rig.rotation)));
  EXPECT_LT(length(off), turned) << "radians";
  std::cout << "[ figures  ] baseline " << 100 * (length(found.rig.translation) / baseline - 1)
            << " % off, rms " << found.rms << " px, rows " << found.vertical_after << " px\n";
}

TEST(Calibrate, FindsRenderedRigs) {
  const StereoRig rig = crooked_rig();
  for (BoardKind kind : {BoardKind::kChessboard, BoardKind::kCircles, BoardKind::kCharuco}) {
    Board board{.kind = kind, .columns = 8, .rows = 5, .square = 0.025};
    if (kind == BoardKind::kCircles) board = {kind, 4, 9, 0.02};
    const Shots shots = take(rig, board, 16, 0.5);
    const RigCalibration found = calibrate_rig(shots.pairs, kSize, board, LensModel::kPinhole);
    SCOPED_TRACE(static_cast<int>(kind));
    EXPECT_GT(found.tilt, 20);
    // Markers are found in part of the board only, which leaves the principal points less certain.
    expect_found(found, rig, kind == BoardKind::kCharuco ? 0.01 : 0.004);
  }
}

TEST(Calibrate, FindsWideLenses) {
  StereoRig rig = crooked_rig();
  for (Camera* camera : {&rig.left, &rig.right}) {
    camera->lens = Lens::kFisheye;
    camera->fx *= 0.7;
    camera->fy *= 0.7;
    camera->distortion = {0.02, -0.008, 0.003, -0.001};
  }
  const Board board{.columns = 8, .rows = 5, .square = 0.04};
  const Shots shots = take(rig, board, 16, 0.5);
  const RigCalibration found = calibrate_rig(shots.pairs, kSize, board, LensModel::kFisheye);
  expect_found(found, rig);
  EXPECT_EQ(found.rig.left.lens, Lens::kFisheye);
}

TEST(Calibrate, LeavesOutBadPositionsAndAdvises) {
  const StereoRig rig = crooked_rig();
  const Board board{.columns = 8, .rows = 5, .square = 0.025};
  Shots shots = take(rig, board, 9, 0.5);
  // Corners of one picture that do not belong to the board any more.
  Rng rng(3);
  for (auto& point : shots.pairs[4].left.points)
    point +=
        cv::Point2f(static_cast<float>(8 * rng.uniform()), static_cast<float>(8 * rng.uniform()));
  shots.pairs[6].right = {};
  const RigCalibration found = calibrate_rig(shots.pairs, kSize, board, LensModel::kPinhole);
  EXPECT_NE(found.views[4].rejected.find("far above"), std::string::npos);
  EXPECT_NE(found.views[6].rejected.find("right image"), std::string::npos);
  EXPECT_TRUE(found.views[0].rejected.empty());
  std::string advice;
  for (const auto& text : found.advice) advice += text;
  EXPECT_NE(advice.find("positions were used"), std::string::npos) << advice;
  EXPECT_LT(found.rms, 0.3);

  const Shots flat = take(rig, board, 6, 0.02);
  const RigCalibration untilted = calibrate_rig(flat.pairs, kSize, board, LensModel::kPinhole);
  advice.clear();
  for (const auto& text : untilted.advice) advice += text;
  EXPECT_NE(advice.find("tilted"), std::string::npos) << advice;
}

TEST(Calibrate, RefusesWithReasons) {
  const StereoRig rig = crooked_rig();
  const Board board{.columns = 8, .rows = 5, .square = 0.025};
  const Shots shots = take(rig, board, 5, 0.5);
  auto message = [&](const std::vector<BoardPair>& pairs) {
    return error_of(ErrorKind::kInput,
                    [&] { calibrate_rig(pairs, kSize, board, LensModel::kPinhole); });
  };
  EXPECT_NE(message({}).find("0 of 0 pairs"), std::string::npos);
  EXPECT_NE(message({shots.pairs[0], shots.pairs[1]}).find("2 of 2 pairs"), std::string::npos);
  std::vector<BoardPair> swapped = shots.pairs;
  for (auto& pair : swapped) std::swap(pair.left, pair.right);
  const std::string text = message(swapped);
  EXPECT_NE(text.find("swapped"), std::string::npos) << text;
  EXPECT_NE(text.find("mirrored"), std::string::npos) << text;
  cv::Mat grey;
  cv::cvtColor(mat(const_cast<Image&>(shots.left[0])), grey, cv::COLOR_RGB2GRAY);
  const Board wrong{.columns = 9, .rows = 6, .square = 0.025};
  EXPECT_FALSE(find_board(grey, wrong).found());
  EXPECT_NE(board_doubt(grey, wrong).find("--board 8x5"), std::string::npos);
  error_of(ErrorKind::kUsage, [] { Board{.columns = 2}.validate(); });
  error_of(ErrorKind::kUsage, [] { Board{.square = -1}.validate(); });
  error_of(ErrorKind::kUsage, [] { Board{.dictionary = "x"}.validate(); });
}

cv::Mat first_shot(const Board& board) {
  const StereoRig rig = crooked_rig();
  const Shots shots = take(rig, board, 1, 0.3);
  cv::Mat grey;
  cv::cvtColor(mat(const_cast<Image&>(shots.left[0])), grey, cv::COLOR_RGB2GRAY);
  return grey;
}

TEST(Calibrate, TellsWhatElseTheImagesShow) {
  const Board charuco{.kind = BoardKind::kCharuco, .columns = 8, .rows = 5, .square = 0.025};
  const cv::Mat grey = first_shot(charuco);
  EXPECT_TRUE(find_board(grey, charuco).found());
  EXPECT_EQ(board_doubt(grey, charuco), "");
  cv::Mat mirrored;
  cv::flip(grey, mirrored, 1);
  EXPECT_FALSE(find_board(mirrored, charuco).found());
  EXPECT_NE(board_doubt(mirrored, charuco).find("mirrored"), std::string::npos);
  Board smaller = charuco, other = charuco;
  smaller.columns = 5;
  EXPECT_NE(board_doubt(grey, smaller).find("markers 0 to 17"), std::string::npos)
      << board_doubt(grey, smaller);
  other.dictionary = "6x6_50";
  EXPECT_NE(board_doubt(grey, other).find("4x4_250"), std::string::npos);

  const Board circles{BoardKind::kCircles, 4, 9, 0.02};
  Board wrong = circles;
  wrong.columns = 9, wrong.rows = 4;
  EXPECT_NE(board_doubt(first_shot(circles), wrong).find("--board 4x9"), std::string::npos);
  EXPECT_EQ(board_doubt(cv::Mat(360, 480, CV_8UC1, cv::Scalar(90)), circles), "");
}

TEST(Calibrate, TellsWhenThePicturesDoNotBelongTogether) {
  const StereoRig rig = crooked_rig();
  const Board board{.columns = 8, .rows = 5, .square = 0.025};
  Shots shots = take(rig, board, 8, 0.5);
  for (std::size_t i = 0; i + 1 < shots.pairs.size(); ++i)
    std::swap(shots.pairs[i].right, shots.pairs[i + 1].right);
  std::string text;
  try {
    for (const auto& advice : calibrate_rig(shots.pairs, kSize, board, LensModel::kPinhole).advice)
      text += advice;
  } catch (const Error& error) {
    text = error.what();
  }
  EXPECT_NE(text.find("do not belong together"), std::string::npos) << text;
}

TEST(Calibrate, SheetShowsBothCameras) {
  const StereoRig rig = crooked_rig();
  const Board board{.columns = 8, .rows = 5, .square = 0.025};
  Shots shots = take(rig, board, 5, 0.5);
  const RigCalibration found = calibrate_rig(shots.pairs, kSize, board, LensModel::kPinhole);
  const cv::Mat sheet =
      calibration_sheet(found, shots.pairs, mat(shots.left[0]), mat(shots.right[0]));
  EXPECT_EQ(sheet.size(), cv::Size(2 * kSize.width, 2 * kSize.height));
  const cv::Point at = shots.pairs[0].left.points[0];
  EXPECT_GT(sheet.at<cv::Vec3b>(at)[1], sheet.at<cv::Vec3b>(at)[2] + 50) << "a green dot";
}

}  // namespace
}  // namespace nmrf
