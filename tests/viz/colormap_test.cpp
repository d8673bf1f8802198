#include "viz/colormap.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <opencv2/imgproc.hpp>
#include <vector>

#include "nmrf/disparity.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::error_of;

cv::Mat row_of(const std::vector<float>& values) {
  return cv::Mat(1, static_cast<int>(values.size()), CV_32FC1, const_cast<float*>(values.data()))
      .clone();
}

const cv::Vec3b kBlack(0, 0, 0);

TEST(Colormap, TablesAreOpenCvs) {
  for (auto [map, number] : {std::pair(Colormap::kTurbo, cv::COLORMAP_TURBO),
                             std::pair(Colormap::kInferno, cv::COLORMAP_INFERNO),
                             std::pair(Colormap::kJet, cv::COLORMAP_JET)}) {
    cv::Mat grey(1, 3, CV_8UC1), wanted;
    grey.at<std::uint8_t>(0, 0) = 0;
    grey.at<std::uint8_t>(0, 1) = 51;  // a fifth of 255
    grey.at<std::uint8_t>(0, 2) = 255;
    cv::applyColorMap(grey, wanted, number);
    const cv::Mat picture = colorize(row_of({10, 12, 20}), map, ColorRange{10, 20});
    ASSERT_EQ(picture.type(), CV_8UC3);
    for (int x = 0; x < 3; ++x)
      EXPECT_EQ(picture.at<cv::Vec3b>(0, x), wanted.at<cv::Vec3b>(0, x)) << enum_name(map) << x;
  }
}

TEST(Colormap, KittiNodes) {
  // The corners black, blue, red, magenta, green, cyan, yellow, white at the sums of the weights.
  const std::vector<float> nodes = {0, 114, 299, 413, 587, 701, 886, 1000};
  const std::vector<cv::Vec3b> bgr = {{0, 0, 0},   {255, 0, 0},   {0, 0, 255},   {255, 0, 255},
                                      {0, 255, 0}, {255, 255, 0}, {0, 255, 255}, {255, 255, 255}};
  const cv::Mat picture = colorize(row_of(nodes), Colormap::kKitti, ColorRange{0, 1000});
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (int c = 0; c < 3;
         ++c)  // a table of 256 steps hits a node within half a step of 1000 / 255
      EXPECT_NEAR(picture.at<cv::Vec3b>(0, static_cast<int>(i))[c], bgr[i][c], 255 * 2.0 / 114)
          << nodes[i];
  // Half way from black to blue, and from blue to red.
  const cv::Mat between = colorize(row_of({57, 206.5f}), Colormap::kKitti, ColorRange{0, 1000});
  EXPECT_NEAR(between.at<cv::Vec3b>(0, 0)[0], 128, 5);
  EXPECT_EQ(between.at<cv::Vec3b>(0, 0)[2], 0);
  EXPECT_NEAR(between.at<cv::Vec3b>(0, 1)[0], 128, 4);
  EXPECT_NEAR(between.at<cv::Vec3b>(0, 1)[2], 128, 4);
}

TEST(Colormap, ClampsAndBlackens) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const auto& entry : EnumNames<Colormap>::values) {
    const Colormap map = entry.first;
    const cv::Mat ends = colorize(row_of({0, 10}), map, ColorRange{0, 10});
    const cv::Mat picture = colorize(
        row_of({-5, -1e30f, 11, 1e30f, inf, -inf, std::numeric_limits<float>::quiet_NaN()}), map,
        ColorRange{0, 10});
    EXPECT_EQ(picture.at<cv::Vec3b>(0, 0), ends.at<cv::Vec3b>(0, 0));
    EXPECT_EQ(picture.at<cv::Vec3b>(0, 1), ends.at<cv::Vec3b>(0, 0));
    EXPECT_EQ(picture.at<cv::Vec3b>(0, 2), ends.at<cv::Vec3b>(0, 1));
    EXPECT_EQ(picture.at<cv::Vec3b>(0, 3), ends.at<cv::Vec3b>(0, 1));
    for (int x = 4; x < 7; ++x) EXPECT_EQ(picture.at<cv::Vec3b>(0, x), kBlack);
    EXPECT_NE(ends.at<cv::Vec3b>(0, 0), ends.at<cv::Vec3b>(0, 1));
  }
}

TEST(Colormap, RobustRangeIgnoresOutliersAndInvalid) {
  cv::Mat map(10, 101, CV_32FC1, cv::Scalar(kInvalidDisparity));
  std::vector<float> valid;
  cv::RNG random(3);
  for (int x = 0; x < 101; ++x)
    for (int y = 0; y < 7; ++y) {
      map.at<float>(y, x) = static_cast<float>(random.uniform(5.0, 50.0));
      if (x == 50 && y < 3) map.at<float>(y, x) = 1e6f;
      if (x == 51 && y < 3) map.at<float>(y, x) = -1e6f;
      valid.push_back(map.at<float>(y, x));
    }
  std::sort(valid.begin(), valid.end());
  const ColorRange range = robust_range(map);
  EXPECT_EQ(range.lo, valid[7]);    // 0.01 * 706 = 7.06
  EXPECT_EQ(range.hi, valid[699]);  // 0.99 * 706 = 698.94
  EXPECT_GE(range.lo, 5.0f);
  EXPECT_LE(range.hi, 50.0f);
  // Without a range the picture takes this one.
  const cv::Mat automatic = colorize(map, Colormap::kTurbo);
  const cv::Mat given = colorize(map, Colormap::kTurbo, range);
  EXPECT_EQ(cv::norm(automatic, given, cv::NORM_INF), 0);
}

TEST(Colormap, FlatAndEmptyMaps) {
  const ColorRange none = robust_range(cv::Mat(3, 3, CV_32FC1, cv::Scalar(kInvalidDisparity)));
  EXPECT_EQ(none.lo, 0);
  EXPECT_EQ(none.hi, 1);
  EXPECT_EQ(cv::countNonZero(
                colorize(cv::Mat(3, 3, CV_32FC1, cv::Scalar(kInvalidDisparity)), Colormap::kJet)
                    .reshape(1)),
            0);
  for (float value : {0.0f, 7.5f, 1e30f, -4.0f}) {
    const ColorRange flat = robust_range(cv::Mat(1, 1, CV_32FC1, cv::Scalar(value)));
    EXPECT_EQ(flat.lo, value);
    EXPECT_GT(flat.hi, flat.lo);
    EXPECT_EQ(colorize(cv::Mat(1, 1, CV_32FC1, cv::Scalar(value)), Colormap::kTurbo).size(),
              cv::Size(1, 1));
  }
}

TEST(Colormap, Refuses) {
  const cv::Mat map = row_of({1, 2});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (ColorRange range :
       {ColorRange{1, 1}, ColorRange{2, 1}, ColorRange{nan, 1}, ColorRange{0, kInvalidDisparity}})
    error_of(ErrorKind::kUsage, [&] { colorize(map, Colormap::kTurbo, range); });
  error_of(ErrorKind::kUsage, [&] { colorize(cv::Mat(), Colormap::kTurbo); });
  error_of(ErrorKind::kUsage, [&] { colorize(cv::Mat(2, 2, CV_8UC1), Colormap::kTurbo); });
  error_of(ErrorKind::kUsage, [&] { robust_range(cv::Mat(2, 2, CV_64FC1)); });
}

}  // namespace
}  // namespace nmrf
