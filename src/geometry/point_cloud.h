// Coloured points in space from a disparity map.
#pragma once

#include <limits>
#include <opencv2/core.hpp>
#include <vector>

#include "io/ply.h"
#include "nmrf/calibration.h"

namespace nmrf {

struct PointCloudOptions {
  double z_near = 0;                                       // metres; nearer points are dropped
  double z_far = std::numeric_limits<double>::infinity();  // metres; farther points are dropped
  // Pixels; a pixel whose disparity differs from one of its four neighbours by more than this is
  // dropped. It removes the points that float between object and background. 0 = keep all.
  double edge_threshold = 0;
  int stride = 1;  // take every stride-th pixel of every stride-th row

  // Throws Error(kUsage).
  void validate() const;
};

// The points of the valid pixels, row by row, in the frame of the left camera (metres; +x right, +y
// down, +z forward). `disparity`: CV_32FC1, pixels. `image`: CV_8UC3 in BGR order, same size.
// `occluded`: empty, or CV_8UC1 of the same size; where it is nonzero there will be no point.
// `calibration` holds for images of this size.
std::vector<ColoredPoint> point_cloud(const cv::Mat& disparity, const cv::Mat& image,
                                      const Calibration& calibration, const cv::Mat& occluded = {},
                                      const PointCloudOptions& options = {});

}  // namespace nmrf
