// Does the pair look like a rectified pair in the right order? Warnings for people, never errors.
#pragma once

#include <opencv2/core.hpp>
#include <string>
#include <vector>

namespace nmrf {

// What matched image features say. Offsets are in pixels of the given images.
struct PairCheck {
  int matches = 0;            // features found in both images, after discarding the inconsistent
  bool conclusive = false;    // enough of them to say anything
  double vertical = 0;        // median of y_left - y_right
  double vertical_rms = 0;    // root mean square over the image of the fitted vertical offset
  double horizontal = 0;      // median of x_left - x_right: the disparity
  double negative_share = 0;  // of the features that moved, the share with x_left < x_right
  bool swapped = false;
  bool not_rectified = false;
  std::vector<std::string> warnings;  // full sentences; empty when nothing looks wrong
};

// Looks at the two images (CV_8UC3 or CV_8UC1, the same size). Conservative: says nothing when the
// images show too little. Takes a few hundredths of a second. Throws Error(kUsage) for other types.
PairCheck check_pair(const cv::Mat& left, const cv::Mat& right);

}  // namespace nmrf
