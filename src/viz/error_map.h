// Pictures of disparity errors in KITTI's colours.
#pragma once

#include <opencv2/core.hpp>

namespace nmrf {

struct ErrorMapOptions {
  bool dilate = false;  // paint the 3x3 pixels around sparse truth, so that it can be seen
};

// KITTI's measure of an error: n = min(|d - truth| / 3, 20 |d - truth| / |truth|). Above 1 the
// pixel counts as wrong (D1: more than 3 px and more than 5 %). An invalid prediction has n =
// +infinity.
float kitti_error(float predicted, float truth);

// The colour (BGR) of an error: dark blue for n = 0, over light blue below 1 and yellow above, to
// dark red; each step of the ten doubles n.
cv::Vec3b kitti_error_color(float n);

// A picture, CV_8UC3 in BGR order, of the errors of `predicted` where `truth` is valid (both
// CV_32FC1 in pixels, of equal size); black elsewhere. `occluded` is empty, or CV_8UC1 and nonzero
// where the truth is hidden in the other view: there the colours have half intensity. With `dilate`
// a pixel without truth takes the colour of its worst neighbour among the eight.
cv::Mat error_map(const cv::Mat& predicted, const cv::Mat& truth, const cv::Mat& occluded = {},
                  const ErrorMapOptions& options = {});

}  // namespace nmrf
