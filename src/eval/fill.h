// Filling holes of a disparity map the way the KITTI development kit does before it compares.
#pragma once

#include <opencv2/core.hpp>

namespace nmrf {

// A copy of `disparity` (CV_32FC1, pixels; every non-finite value is a hole) in which each run of
// holes of a row takes the smaller of the two values that border it (occlusions belong to the
// background), runs at the ends of a row take the value next to them, and then the rows above the
// first and below the last row with a value are copies of it. A row without any value that lies
// between two others stays as it is, as does a map without any value.
cv::Mat fill_background(const cv::Mat& disparity);

}  // namespace nmrf
