// Calibrates two cameras by images of a board that both see.
#pragma once

#include <functional>
#include <opencv2/core.hpp>
#include <string>
#include <vector>

#include "nmrf/rectify.h"
#include "rig/board.h"

namespace nmrf {

constexpr double kHighError = 1;  // px: a reprojection error above it is worth a word

enum class LensModel {
  kPinhole,   // k1 k2 p1 p2 k3
  kRational,  // and k4 k5 k6, for wide lenses
  kFisheye,   // equidistant, for more than about 110 degrees
};

// One position of the board, as both cameras saw it.
struct BoardPair {
  std::string name;
  BoardView left, right;
};

// What became of it.
struct ViewReport {
  std::string name;
  int points = 0;        // seen by both cameras
  double rms = 0;        // px, reprojection error of the worse camera
  std::string rejected;  // why it is left out; empty: it is used
};

struct RigCalibration {
  StereoRig rig;
  double rms = 0;  // px, reprojection error of both cameras together
  double rms_left = 0, rms_right = 0;
  double vertical_before = 0;  // px: mean difference of rows of the points as they were taken
  double vertical_after = 0;   // and rectified, in px of the rectified images
  double coverage_left = 0, coverage_right = 0;  // share of a grid of 8 x 6 cells that saw points
  double tilt = 0;  // degrees, largest between two positions of the board
  std::vector<ViewReport> views;
  std::vector<std::string> advice;  // what would make it better
};

// At least three positions with eight common points each are needed. Throws Error(kInput) with
// advice when that is not given or the numbers make no sense.
RigCalibration calibrate_rig(const std::vector<BoardPair>& pairs, const cv::Size& size,
                             const Board& board, LensModel lens);

// A picture of the points of all positions on both sensors (green: used, red: rejected) above a
// rectified pair with lines along its rows. CV_8UC3; left, right: one pair as taken, CV_8UC3.
cv::Mat calibration_sheet(const RigCalibration& result, const std::vector<BoardPair>& pairs,
                          const cv::Mat& left, const cv::Mat& right);

}  // namespace nmrf
