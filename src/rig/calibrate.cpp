#include "rig/calibrate.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <opencv2/calib3d.hpp>
#include <opencv2/imgproc.hpp>

#include "core/check.h"
#include "core/quantile.h"
#include "nmrf/opencv.h"

namespace nmrf {
namespace {

constexpr int kLeastPoints = 8, kLeastViews = 3;
constexpr int kGoodViews = 10;
constexpr double kBadView = 3;         // times the median error,
constexpr double kBadViewLeast = 0.5;  // and at least this many px
constexpr double kLeastTilt = 15;      // degrees
constexpr double kGoodCoverage = 0.5;

// The points of a position that both cameras saw.
struct Position {
  std::size_t pair;  // of the input
  std::vector<cv::Point3f> board;
  std::vector<cv::Point2f> left, right;
};

Position common_points(const BoardPair& pair, std::size_t index, const Board& board) {
  Position position{index, {}, {}, {}};
  for (std::size_t i = 0, j = 0; i < pair.left.ids.size() && j < pair.right.ids.size();) {
    const int a = pair.left.ids[i], b = pair.right.ids[j];
    if (a == b) {
      position.board.push_back(board.point(a));
      position.left.push_back(pair.left.points[i]);
      position.right.push_back(pair.right.points[j]);
    }
    i += a <= b;
    j += b <= a;
  }
  // A board that looks the same upside down may be numbered from either end.
  if (board.kind == BoardKind::kChessboard && !position.left.empty()) {
    const cv::Point2f l = position.left.back() - position.left.front(),
                      r = position.right.back() - position.right.front();
    if (l.dot(r) < 0) std::reverse(position.right.begin(), position.right.end());
  }
  return position;
}

struct Single {
  cv::Mat matrix, distortion;
  double rms = 0;
  std::vector<cv::Mat> rotations, translations;
  std::vector<double> errors;  // px, root mean square per position
};

using Points3 = std::vector<std::vector<cv::Point3f>>;
using Points2 = std::vector<std::vector<cv::Point2f>>;

Single calibrate_one(const Points3& board, const Points2& seen, const cv::Size& size,
                     LensModel lens) {
  Single one;
  if (lens == LensModel::kFisheye) {
    const int flags = cv::fisheye::CALIB_RECOMPUTE_EXTRINSIC | cv::fisheye::CALIB_FIX_SKEW;
    one.rms = cv::fisheye::calibrate(board, seen, size, one.matrix, one.distortion, one.rotations,
                                     one.translations, flags);
  } else {
    const int flags = lens == LensModel::kRational ? cv::CALIB_RATIONAL_MODEL : 0;
    one.rms = cv::calibrateCamera(board, seen, size, one.matrix, one.distortion, one.rotations,
                                  one.translations, flags);
  }
  for (std::size_t i = 0; i < board.size(); ++i) {
    std::vector<cv::Point2f> expected;
    if (lens == LensModel::kFisheye)
      cv::fisheye::projectPoints(board[i], expected, one.rotations[i], one.translations[i],
                                 one.matrix, one.distortion);
    else
      cv::projectPoints(board[i], one.rotations[i], one.translations[i], one.matrix, one.distortion,
                        expected);
    one.errors.push_back(cv::norm(expected, seen[i], cv::NORM_L2) /
                         std::sqrt(static_cast<double>(expected.size())));
  }
  return one;
}

Camera camera_of(const Single& one, const cv::Size& size, LensModel lens) {
  Camera camera;
  camera.fx = one.matrix.at<double>(0, 0);
  camera.fy = one.matrix.at<double>(1, 1);
  camera.cx = one.matrix.at<double>(0, 2);
  camera.cy = one.matrix.at<double>(1, 2);
  camera.lens = lens == LensModel::kFisheye ? Lens::kFisheye : Lens::kPinhole;
  const std::size_t count = lens == LensModel::kFisheye ? 4 : lens == LensModel::kRational ? 8 : 5;
  for (std::size_t i = 0; i < count; ++i)
    camera.distortion.push_back(one.distortion.at<double>(static_cast<int>(i)));
  camera.width = size.width;
  camera.height = size.height;
  return camera;
}

double coverage(const Points2& seen, const cv::Size& size) {
  constexpr int kColumns = 8, kRows = 6;
  std::array<bool, kColumns * kRows> hit{};
  for (const auto& view : seen)
    for (const auto& p : view) {
      const int column = std::clamp(static_cast<int>(p.x * kColumns / size.width), 0, kColumns - 1);
      const int row = std::clamp(static_cast<int>(p.y * kRows / size.height), 0, kRows - 1);
      hit[static_cast<std::size_t>(row * kColumns + column)] = true;
    }
  return static_cast<double>(std::count(hit.begin(), hit.end(), true)) / hit.size();
}

// The largest angle between the boards of two positions, degrees.
double largest_tilt(const std::vector<cv::Mat>& rotations) {
  std::vector<cv::Vec3d> normals;
  for (const cv::Mat& rotation : rotations) {
    cv::Matx33d matrix;
    cv::Rodrigues(rotation, matrix);
    normals.emplace_back(matrix(0, 2), matrix(1, 2), matrix(2, 2));
  }
  double most = 0;
  for (std::size_t i = 0; i < normals.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      most = std::max(most, std::acos(std::clamp(std::abs(normals[i].dot(normals[j])), 0.0, 1.0)));
  return most * 180 / std::numbers::pi;
}

// Rows of the points before and after rectification.
void measure_rows(RigCalibration& result, const std::vector<Position>& positions) {
  const Rectifier rectifier(result.rig, {});
  const Calibration& c = rectifier.calibration();
  auto row = [&](const Camera& camera, const Matrix3& rotation, const cv::Point2f& p) {
    Vector3 ray{};
    if (!camera.ray(p.x, p.y, ray)) return std::nan("");
    const double y = rotation[3] * ray[0] + rotation[4] * ray[1] + rotation[5] * ray[2];
    const double z = rotation[6] * ray[0] + rotation[7] * ray[1] + rotation[8] * ray[2];
    return c.fy * y / z + c.cy;
  };
  double before = 0, after = 0;
  int count = 0;
  for (const Position& position : positions)
    for (std::size_t i = 0; i < position.left.size(); ++i) {
      const double difference =
          row(result.rig.left, rectifier.left_rotation(), position.left[i]) -
          row(result.rig.right, rectifier.right_rotation(), position.right[i]);
      if (!std::isfinite(difference)) continue;
      before += std::abs(position.left[i].y - position.right[i].y);
      after += std::abs(difference);
      ++count;
    }
  result.vertical_before = before / std::max(1, count);
  result.vertical_after = after / std::max(1, count);
}

// What to say of cameras that fit alone and not together; empty: they do.
std::string misfit(const RigCalibration& result) {
  const double alone = std::max(result.rms_left, result.rms_right);
  if (result.rms <= kHighError || alone > result.rms / 3) return "";
  return fmt::format(
      "Each camera alone fits to {:.2f} px, both together only to {:.2f} px: the pictures of a "
      "pair "
      "do not belong together. Were they taken at the same time and named alike, did nothing move "
      "between the cameras, is one side mirrored?",
      alone, result.rms);
}

void advise(RigCalibration& result, std::size_t used) {
  auto say = [&](std::string text) { result.advice.push_back(std::move(text)); };
  if (used < kGoodViews)
    say(fmt::format("Only {} board positions were used; take 15 to 30.", used));
  if (result.tilt < kLeastTilt)
    say(fmt::format(
        "The board was hardly tilted (at most {:.0f} degrees between two positions), so focal "
        "length and baseline are uncertain. Tilt it by 30 to 45 degrees in all directions.",
        result.tilt));
  const double least = std::min(result.coverage_left, result.coverage_right);
  if (least < kGoodCoverage)
    say(
        fmt::format("The board reached only {:.0f} % of the image; distortion is unknown "
                    "elsewhere. Show it in the corners and at the borders too.",
                    100 * least));
  if (const std::string text = misfit(result); !text.empty())
    say(text);
  else if (result.rms > kHighError)
    say(
        fmt::format("The reprojection error of {:.2f} px is high; below 0.5 is good. Is the board "
                    "flat, was it held still, are the images sharp and taken at the same time, is "
                    "the lens model right (--lens)?",
                    result.rms));
}

}  // namespace

RigCalibration calibrate_rig(const std::vector<BoardPair>& pairs, const cv::Size& size,
                             const Board& board, LensModel lens) {
  RigCalibration result;
  std::vector<Position> positions;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    Position position = common_points(pairs[i], i, board);
    ViewReport report{pairs[i].name, static_cast<int>(position.left.size()), 0, ""};
    if (!pairs[i].left.found() || !pairs[i].right.found())
      report.rejected =
          fmt::format("the board was not found in the {}", pairs[i].left.found()    ? "right image"
                                                           : pairs[i].right.found() ? "left image"
                                                                                    : "images");
    else if (report.points < kLeastPoints)
      report.rejected = fmt::format("only {} points are seen by both cameras", report.points);
    else
      positions.push_back(std::move(position));
    result.views.push_back(std::move(report));
  }
  check(positions.size() >= kLeastViews, ErrorKind::kInput,
        "the board was found by both cameras in {} of {} pairs; at least {} are needed, 15 to 30 "
        "are good. Is --board right (inner corners, not squares)? The whole board must be in both "
        "images, sharp and evenly lit.",
        positions.size(), pairs.size(), kLeastViews);

  Points3 points;
  Points2 left, right;
  Single one, two;
  auto calibrate_both = [&] {
    points.clear(), left.clear(), right.clear();
    for (const Position& position : positions) {
      points.push_back(position.board);
      left.push_back(position.left);
      right.push_back(position.right);
    }
    one = calibrate_one(points, left, size, lens);
    two = calibrate_one(points, right, size, lens);
  };
  try {
    // Positions that fit badly are left out and the rest is calibrated again.
    for (int round = 0; round < 4; ++round) {
      calibrate_both();
      std::vector<double> errors;
      for (std::size_t i = 0; i < positions.size(); ++i)
        errors.push_back(std::max(one.errors[i], two.errors[i]));
      for (std::size_t i = 0; i < positions.size(); ++i)
        result.views[positions[i].pair].rms = errors[i];
      std::vector<double> sorted = errors;
      const double limit = std::max(kBadViewLeast, kBadView * quantile(sorted, 0.5));
      std::vector<Position> good;
      for (std::size_t i = 0; i < positions.size(); ++i) {
        if (errors[i] <= limit)
          good.push_back(positions[i]);
        else if (round < 3)
          result.views[positions[i].pair].rejected =
              fmt::format("its error of {:.2f} px is far above that of the others", errors[i]);
      }
      if (good.size() == positions.size() || good.size() < kLeastViews || round == 3) break;
      positions = std::move(good);
    }
    cv::Mat rotation, translation, essential, fundamental;
    if (lens == LensModel::kFisheye) {
      result.rms = cv::fisheye::stereoCalibrate(points, left, right, one.matrix, one.distortion,
                                                two.matrix, two.distortion, size, rotation,
                                                translation, cv::fisheye::CALIB_FIX_INTRINSIC);
    } else {
      const int flags = cv::CALIB_USE_INTRINSIC_GUESS |
                        (lens == LensModel::kRational ? cv::CALIB_RATIONAL_MODEL : 0);
      result.rms = cv::stereoCalibrate(
          points, left, right, one.matrix, one.distortion, two.matrix, two.distortion, size,
          rotation, translation, essential, fundamental, flags,
          cv::TermCriteria(cv::TermCriteria::COUNT + cv::TermCriteria::EPS, 200, 1e-8));
    }
    result.rig.left = camera_of(one, size, lens);
    result.rig.right = camera_of(two, size, lens);
    std::copy_n(rotation.ptr<double>(), 9, result.rig.rotation.begin());
    std::copy_n(translation.ptr<double>(), 3, result.rig.translation.begin());
  } catch (const cv::Exception& error) {
    fail(ErrorKind::kInput,
         "the calibration does not converge ({}). Take more board positions, tilted in all "
         "directions; try --lens pinhole.",
         error.err);
  }
  result.rig.source = "the calibration";
  result.rms_left = one.rms;
  result.rms_right = two.rms;
  result.coverage_left = coverage(left, size);
  result.coverage_right = coverage(right, size);
  result.tilt = largest_tilt(one.rotations);
  try {
    result.rig.validate();
    measure_rows(result, positions);
  } catch (const Error& error) {
    const std::string why = misfit(result);
    throw Error(ErrorKind::kInput,
                fmt::format("{} {}", error.what(),
                            why.empty() ? "Check the order of the folders, and that the images are "
                                          "not mirrored, as those of a front camera often are."
                                        : why));
  }
  advise(result, positions.size());
  return result;
}

cv::Mat calibration_sheet(const RigCalibration& result, const std::vector<BoardPair>& pairs,
                          const cv::Mat& left, const cv::Mat& right) {
  const cv::Size size = left.size();
  cv::Mat sheet(2 * size.height, 2 * size.width, CV_8UC3, cv::Scalar::all(32));
  const int radius = std::max(2, size.width / 300);
  for (int side = 0; side < 2; ++side) {
    cv::Mat sensor = sheet(cv::Rect(side * size.width, 0, size.width, size.height));
    (side == 0 ? left : right).convertTo(sensor, CV_8UC3, 0.4);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const bool used = result.views[i].rejected.empty();
      for (const auto& p : (side == 0 ? pairs[i].left : pairs[i].right).points)
        cv::circle(sensor, p, radius, used ? cv::Scalar(80, 220, 80) : cv::Scalar(60, 60, 240),
                   cv::FILLED, cv::LINE_AA);
    }
  }
  const Rectifier rectifier(result.rig, {});
  Image images[] = {rectifier.left(view(left)), rectifier.right(view(right))};
  for (int side = 0; side < 2; ++side)
    cv::cvtColor(mat(images[side]),
                 sheet(cv::Rect(side * size.width, size.height, size.width, size.height)),
                 cv::COLOR_RGB2BGR);
  for (int i = 0; i < 16; ++i) {
    const int y = size.height + (2 * i + 1) * size.height / 32;
    cv::line(sheet, {0, y}, {2 * size.width - 1, y},
             i % 2 ? cv::Scalar(0, 255, 255) : cv::Scalar(0, 255, 0), 1);
  }
  return sheet;
}

}  // namespace nmrf
