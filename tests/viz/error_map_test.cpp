#include "viz/error_map.h"

#include <limits>
#include <opencv2/imgproc.hpp>
#include <vector>

#include "nmrf/disparity.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::error_of;

const cv::Vec3b kBlack(0, 0, 0);

TEST(ErrorMap, MeasureAgreesWithD1) {
  // n > 1 exactly when the pixel is wrong by KITTI's rule.
  for (float truth : {0.5f, 1.0f, 10.0f, 59.0f, 60.0f, 61.0f, 100.0f, 200.0f})
    for (float error : {0.0f, 0.5f, 2.9f, 3.1f, 4.9f, 5.1f, 9.9f, 10.1f, 50.0f})
      for (float sign : {1.0f, -1.0f}) {
        const bool wrong = error > 3 && error / truth > 0.05f;
        EXPECT_EQ(kitti_error(truth + sign * error, truth) > 1, wrong) << truth << " " << error;
      }
  EXPECT_FLOAT_EQ(kitti_error(16, 10), 2);       // 6/3 = 2 against 20*6/10 = 12
  EXPECT_FLOAT_EQ(kitti_error(206, 200), 0.6f);  // 2 against 20*6/200
  EXPECT_FLOAT_EQ(kitti_error(6, 0), 2);
  EXPECT_EQ(kitti_error(kInvalidDisparity, 5), kInvalidDisparity);
  EXPECT_EQ(kitti_error(std::numeric_limits<float>::quiet_NaN(), 5), kInvalidDisparity);
}

TEST(ErrorMap, TenColours) {
  const std::vector<float> edges = {0.0625f, 0.125f, 0.25f, 0.5f, 1, 2, 4, 8, 16};
  std::vector<cv::Vec3b> colors = {kitti_error_color(0)};
  for (float edge : edges) {
    EXPECT_EQ(kitti_error_color(std::nextafter(edge, 0.0f)), colors.back()) << edge;
    EXPECT_NE(kitti_error_color(edge), colors.back()) << edge;
    colors.push_back(kitti_error_color(edge));
  }
  EXPECT_EQ(colors.front(), cv::Vec3b(149, 54, 49));  // BGR: dark blue
  EXPECT_EQ(colors.back(), cv::Vec3b(38, 0, 165));    // dark red
  EXPECT_EQ(kitti_error_color(kInvalidDisparity), colors.back());
  for (std::size_t i = 0; i < 5; ++i) EXPECT_GT(colors[i][0], colors[i][2]);   // right: more blue
  for (std::size_t i = 5; i < 10; ++i) EXPECT_LT(colors[i][0], colors[i][2]);  // wrong: more red
}

TEST(ErrorMap, PaintsWhereTruthIs) {
  cv::Mat truth(3, 4, CV_32FC1, cv::Scalar(10)), predicted(3, 4, CV_32FC1, cv::Scalar(10));
  truth.at<float>(0, 0) = kInvalidDisparity;
  predicted.at<float>(1, 1) = 16;
  predicted.at<float>(2, 2) = kInvalidDisparity;
  cv::Mat occluded = cv::Mat::zeros(3, 4, CV_8UC1);
  occluded.at<std::uint8_t>(1, 1) = 255;
  occluded.at<std::uint8_t>(2, 3) = 1;
  const cv::Mat picture = error_map(predicted, truth, occluded);
  ASSERT_EQ(picture.type(), CV_8UC3);
  EXPECT_EQ(picture.at<cv::Vec3b>(0, 0), kBlack);
  EXPECT_EQ(picture.at<cv::Vec3b>(0, 1), kitti_error_color(0));
  const cv::Vec3b bright = kitti_error_color(2), half = picture.at<cv::Vec3b>(1, 1);
  for (int c = 0; c < 3; ++c) EXPECT_EQ(half[c], bright[c] / 2);
  EXPECT_EQ(picture.at<cv::Vec3b>(2, 2), kitti_error_color(1000));
  EXPECT_EQ(picture.at<cv::Vec3b>(2, 3)[0], kitti_error_color(0)[0] / 2);
  EXPECT_EQ(error_map(predicted, truth).at<cv::Vec3b>(1, 1), bright);
}

TEST(ErrorMap, DilationFillsAroundSparseTruth) {
  cv::Mat truth(5, 7, CV_32FC1, cv::Scalar(kInvalidDisparity));
  cv::Mat predicted(5, 7, CV_32FC1, cv::Scalar(10));
  truth.at<float>(0, 0) = 10;  // right
  truth.at<float>(2, 3) = 16;  // n = 2
  truth.at<float>(2, 5) = 28;  // n = 6
  const cv::Mat picture = error_map(predicted, truth, {}, {.dilate = true});
  for (int y = 0; y < 5; ++y)
    for (int x = 0; x < 7; ++x) {
      // Independent of the code: the worst over the window, unless the pixel has truth itself.
      float worst = -1;
      for (int v = 0; v < 5; ++v)
        for (int u = 0; u < 7; ++u)
          if (std::abs(v - y) <= 1 && std::abs(u - x) <= 1 && std::isfinite(truth.at<float>(v, u)))
            worst = std::max(worst, kitti_error(10, truth.at<float>(v, u)));
      if (std::isfinite(truth.at<float>(y, x))) worst = kitti_error(10, truth.at<float>(y, x));
      EXPECT_EQ(picture.at<cv::Vec3b>(y, x), worst < 0 ? kBlack : kitti_error_color(worst))
          << x << "," << y;
    }
  // Without it only the three pixels with truth are painted, and no channel of theirs is 0.
  EXPECT_EQ(cv::countNonZero(error_map(predicted, truth).reshape(1)), 9);
}

TEST(ErrorMap, Refuses) {
  const cv::Mat map(2, 3, CV_32FC1, cv::Scalar(1));
  error_of(ErrorKind::kUsage, [&] { error_map(map, cv::Mat()); });
  error_of(ErrorKind::kUsage, [&] { error_map(cv::Mat(), map); });
  error_of(ErrorKind::kUsage, [&] { error_map(cv::Mat(2, 3, CV_8UC1), map); });
  const std::string message =
      error_of(ErrorKind::kUsage, [&] { error_map(cv::Mat(3, 2, CV_32FC1, cv::Scalar(1)), map); });
  EXPECT_NE(message.find("2x3"), std::string::npos);
  EXPECT_NE(message.find("3x2"), std::string::npos);
  error_of(ErrorKind::kUsage, [&] { error_map(map, map, cv::Mat(2, 2, CV_8UC1)); });
  error_of(ErrorKind::kUsage, [&] { error_map(map, map, cv::Mat(2, 3, CV_32FC1)); });
}

}  // namespace
}  // namespace nmrf
