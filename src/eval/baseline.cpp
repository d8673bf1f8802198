#include "eval/baseline.h"

#include <algorithm>
#include <chrono>
#include <opencv2/calib3d.hpp>
#include <opencv2/core/version.hpp>

#include "core/check.h"
#include "eval/fill.h"
#include "nmrf/disparity.h"

namespace nmrf {

cv::Mat sgbm(const cv::Mat& left, const cv::Mat& right) {
  check(left.type() == CV_8UC3 && right.type() == CV_8UC3 && left.size() == right.size(),
        ErrorKind::kInput, "SGBM needs two 8-bit colour images of one size");
  const int fifth = std::clamp(left.cols / 5, 64, 256);
  const int disparities = (fifth + 15) / 16 * 16;
  cv::Mat wide_left, wide_right, fixed;
  cv::copyMakeBorder(left, wide_left, 0, 0, disparities, 0, cv::BORDER_REPLICATE);
  cv::copyMakeBorder(right, wide_right, 0, 0, disparities, 0, cv::BORDER_REPLICATE);
  auto matcher = cv::StereoSGBM::create(0, disparities, 5, 600, 2400, 1, 0, 10, 100, 2,
                                        cv::StereoSGBM::MODE_HH);
  matcher->compute(wide_left, wide_right, fixed);
  cv::Mat result;
  fixed.colRange(disparities, fixed.cols)
      .convertTo(result, CV_32F, 1.0 / static_cast<int>(cv::StereoMatcher::DISP_SCALE));
  result.setTo(kInvalidDisparity, result < 0);
  return result;
}

std::string SgbmMethod::identity() const { return "sgbm 1, OpenCV " CV_VERSION; }

Prediction SgbmMethod::predict(const cv::Mat& left, const cv::Mat& right) const {
  const auto start = std::chrono::steady_clock::now();
  Prediction result;
  result.disparity = fill_background(sgbm(left, right));
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace nmrf
