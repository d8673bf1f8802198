// The baseline on a pair whose disparity is known.
#include "eval/baseline.h"

#include <gtest/gtest.h>

#include <cmath>
#include <opencv2/imgproc.hpp>

#include "data/trees.h"
#include "support/support.h"

namespace nmrf {
namespace {

// A textured plane at `shift` px: the right image is the left one moved to the left.
std::pair<cv::Mat, cv::Mat> shifted_pair(int width, int height, int shift) {
  cv::Mat texture = test::noise_image(width + shift, height, 3);
  cv::GaussianBlur(texture, texture, {3, 3}, 0.8);
  return {texture.colRange(0, width).clone(), texture.colRange(shift, width + shift).clone()};
}

TEST(Sgbm, FindsAShift) {
  const auto [left, right] = shifted_pair(200, 60, 13);
  cv::Mat raw = sgbm(left, right);
  ASSERT_EQ(raw.type(), CV_32FC1);
  ASSERT_EQ(raw.size(), left.size());
  int near = 0;
  for (int y = 0; y < raw.rows; ++y)
    for (int x = 20; x < raw.cols; ++x) near += std::abs(raw.at<float>(y, x) - 13) < 0.5f;
  EXPECT_GT(near, 0.95 * raw.rows * (raw.cols - 20));
}

TEST(Sgbm, MethodLeavesNoHoles) {
  const auto [left, right] = shifted_pair(160, 48, 9);
  SgbmMethod method;
  Prediction prediction = method.predict(left, right);
  EXPECT_TRUE(cv::checkRange(prediction.disparity));
  EXPECT_TRUE(prediction.labels.empty());
  EXPECT_GT(prediction.seconds, 0);
  EXPECT_NE(method.identity().find("OpenCV"), std::string::npos);
}

TEST(Sgbm, RefusesOtherImages) {
  cv::Mat a(20, 90, CV_8UC3, cv::Scalar::all(1)), b(20, 91, CV_8UC3, cv::Scalar::all(1));
  test::error_of(ErrorKind::kInput, [&] { sgbm(a, b); });
  test::error_of(ErrorKind::kInput, [&] { sgbm(a, cv::Mat(20, 90, CV_8UC1)); });
}

}  // namespace
}  // namespace nmrf
