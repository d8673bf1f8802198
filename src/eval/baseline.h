// OpenCV's semi-global matching, so that one sees what the network buys.
#pragma once

#include <opencv2/core.hpp>

#include "eval/method.h"

namespace nmrf {

// StereoSGBM on colour images: mode HH, disparities from 0 to a fifth of the width (at least 64, at
// most 256, rounded up to a multiple of 16), block 5, P1 = 600, P2 = 2400, disp12MaxDiff 1,
// uniqueness 10 %, speckle window 100, range 2. Both images are extended to the left by as many
// replicated columns as there are disparities, so that the left border is matched as well.
// left, right: CV_8UC3, one size. Returns CV_32FC1, px; pixels it rejects are +infinity.
cv::Mat sgbm(const cv::Mat& left, const cv::Mat& right);

// sgbm() with its holes filled by fill_background().
class SgbmMethod : public Method {
 public:
  std::string name() const override { return "sgbm"; }
  std::string identity() const override;
  Prediction predict(const cv::Mat& left, const cv::Mat& right) const override;
};

}  // namespace nmrf
