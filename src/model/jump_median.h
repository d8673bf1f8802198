// The last step of a match: jumps of the disparity are moved to where the colours change.
#pragma once

#include <opencv2/core.hpp>

namespace nmrf {

// A pixel of `map` (CV_32FC1) that has a jump of more than a pixel within two pixels of it takes
// the weighted median of the window of `radius` around it, where a pixel weighs the more the closer
// its colour in `image` (CV_8UC3, of the same size) is. Every other pixel, and one that is not
// finite, stays as it is; values that are not finite are not counted. Radius 0: the map as it is.
//
// The weighted median is the smallest value that, with the smaller ones, has half of the weight:
// always one of the window's, so that no disparity between two surfaces is made up.
cv::Mat median_at_jumps(const cv::Mat& map, const cv::Mat& image, int radius);

inline constexpr int kMostMedianRadius = 16;

}  // namespace nmrf
