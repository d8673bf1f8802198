// The geometry of a rectified pair: from disparity to metres.
#pragma once

#include <filesystem>
#include <opencv2/core.hpp>
#include <string>

namespace nmrf {

// A rectified pair of pinhole cameras. All lengths in pixels of the left image but for the
// baseline.
struct Calibration {
  double fx = 0;  // focal length
  double fy = 0;  // equal to fx for rectified images of square pixels
  double cx = 0;  // principal point of the left camera
  double cy = 0;
  double doffs = 0;     // cx of the right camera minus cx of the left one
  double baseline = 0;  // metres
  int width = 0;        // of the images the numbers hold for; 0 = unknown
  int height = 0;
  std::string source;  // file and recognised format, for messages

  // Throws Error(kInput) unless fx, fy and baseline are positive and everything is finite.
  void validate() const;
  // The calibration of the images resized by sx horizontally and sy vertically.
  Calibration scaled(double sx, double sy) const;
};

// Recognises by content: Middlebury calib.txt (mm baseline), KITTI calib_cam_to_cam.txt
// (P_rect_02/03) and the odometry/object form (P2:, P3:), OpenCV FileStorage yml/xml/json (Q, or
// P1/P2; its baseline has the unit of the calibration target, taken as metres), K.txt (nine numbers
// of K, then the baseline in metres), stereodemo json. Throws Error(kInput) that says what was
// recognised and what is missing; warns when the baseline looks like millimetres.
Calibration read_calibration(const std::filesystem::path& path);

// Depth along the optical axis, Z = baseline * fx / (d + doffs), CV_32FC1 in metres; +infinity
// where the disparity is invalid or d + doffs <= 0.
cv::Mat depth_from_disparity(const cv::Mat& disparity, const Calibration& calibration);

}  // namespace nmrf
