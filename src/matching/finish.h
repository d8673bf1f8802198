// What is done to a map after the network: what the other view cannot show is filled in from what
// it shows, and jumps are moved to where the colours change.
//
// Both take weighted medians over windows of `radius` pixels (0: nothing is done), in which a pixel
// weighs the more the closer its colour is. A weighted median is the smallest value that has, with
// the smaller ones, half of the weight: always one of the window's, so that no disparity between
// two surfaces is made up. map: CV_32FC1, px, of the left view. image: CV_8UC3, of the same size.
// Values that are not finite stay and are not counted.
#pragma once

#include <opencv2/core.hpp>

namespace nmrf {

inline constexpr int kMostFinishRadius = 16;

// By its own account the map shows pixels that the right view does not: their partner lies beyond
// its left edge, or behind a surface that is nearer by more than a pixel. The network has nothing
// to match there.
// - From the last pixel of a row whose partner lies beyond the edge leftwards, all that is beyond
//   or behind takes the median of what lies to its right.
// - What is behind something elsewhere takes the median of what is around it and farther away than
//   what hides it.
// Only values with which the right view would not show the pixel either may fill it; without any it
// stays as it is.
cv::Mat fill_unseen(const cv::Mat& map, const cv::Mat& image, int radius);

// A pixel within two pixels of a jump (neighbours that differ by more than a pixel) takes the
// median around it; slopes and smooth surfaces stay as they are.
cv::Mat median_at_jumps(const cv::Mat& map, const cv::Mat& image, int radius);

}  // namespace nmrf
