// Jumps of the disparity move to where the colours change.
#include "model/jump_median.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <opencv2/imgproc.hpp>
#include <vector>

#include "nmrf/matcher.h"
#include "support/support.h"

namespace nmrf {
namespace {

bool same(const cv::Mat& a, const cv::Mat& b) {
  return a.size() == b.size() && cv::countNonZero(a != b) == 0;
}

// By sorting each window, for maps of finite values.
cv::Mat by_sorting(const cv::Mat& map, const cv::Mat& image, int radius) {
  cv::Mat out = map.clone();
  auto window = [&](int y, int x, int reach, auto&& visit) {
    for (int v = std::max(0, y - reach); v <= std::min(map.rows - 1, y + reach); ++v)
      for (int u = std::max(0, x - reach); u <= std::min(map.cols - 1, x + reach); ++u) visit(v, u);
  };
  for (int y = 0; y < map.rows; ++y)
    for (int x = 0; x < map.cols; ++x) {
      float low = INFINITY, high = -INFINITY;
      window(y, x, 2, [&](int v, int u) {
        low = std::min(low, map.at<float>(v, u));
        high = std::max(high, map.at<float>(v, u));
      });
      if (high - low <= 1) continue;
      std::vector<std::pair<float, long>> voters;
      long total = 0;
      window(y, x, radius, [&](int v, int u) {
        int difference = 0;
        for (int c = 0; c < 3; ++c)
          difference += std::abs(image.at<cv::Vec3b>(y, x)[c] - image.at<cv::Vec3b>(v, u)[c]);
        const long weight = std::lround(4096 * std::exp(-difference / 30.0));
        voters.emplace_back(map.at<float>(v, u), weight);
        total += weight;
      });
      std::sort(voters.begin(), voters.end());
      long sum = 0;
      for (const auto& [value, weight] : voters)
        if (2 * (sum += weight) >= total) {
          out.at<float>(y, x) = value;
          break;
        }
    }
  return out;
}

TEST(JumpMedian, EqualsSorting) {
  cv::RNG rng(5);
  for (const auto& [height, width, radius] : std::vector<std::array<int, 3>>{
           {1, 1, 5}, {1, 40, 3}, {37, 1, 5}, {23, 31, 5}, {40, 57, 1}, {19, 26, 16}}) {
    for (int levels : {2, 6, 1000}) {  // few: many equal values
      SCOPED_TRACE(::testing::Message()
                   << height << "x" << width << " " << radius << " " << levels);
      cv::Mat image(height, width, CV_8UC3), steps(height, width, CV_32SC1), map;
      rng.fill(image, cv::RNG::UNIFORM, 100, 160);
      rng.fill(steps, cv::RNG::UNIFORM, 0, levels);
      steps.convertTo(map, CV_32F, 20.0 / levels);
      const cv::Mat found = median_at_jumps(map, image, radius);
      EXPECT_TRUE(same(found, by_sorting(map, image, radius)));
      EXPECT_TRUE(same(median_at_jumps(map, image, 0), map));
    }
  }
}

// A jagged step of disparity on a straight edge between two colours.
TEST(JumpMedian, StraightensAnEdge) {
  cv::Mat image(60, 80, CV_8UC3, cv::Scalar(30, 60, 90)), truth(60, 80, CV_32FC1, cv::Scalar(10));
  image.colRange(40, 80).setTo(cv::Scalar(120, 100, 140));
  truth.colRange(40, 80).setTo(30);
  cv::Mat jagged = truth.clone();
  for (int y = 0; y < 60; y += 8)  // as cells of 4 x 4 leave it
    jagged(cv::Rect(y % 16 ? 40 : 38, y, 2, 4)).setTo(y % 16 ? 10 : 30);
  ASSERT_EQ(cv::countNonZero(jagged != truth), 64);
  EXPECT_TRUE(same(median_at_jumps(jagged, image, 5), truth));
  // A step two pixels beside the edge moves to it; without an edge it stays.
  cv::Mat beside = truth.clone();
  beside.colRange(38, 40).setTo(30);
  EXPECT_TRUE(same(median_at_jumps(beside, image, 5), truth));
  const cv::Mat grey(60, 80, CV_8UC3, cv::Scalar::all(99));
  EXPECT_TRUE(same(median_at_jumps(beside, grey, 5), beside));
}

TEST(JumpMedian, LeavesSlopesAlone) {
  cv::Mat slope(40, 50, CV_32FC1), image(40, 50, CV_8UC3);
  cv::RNG(3).fill(image, cv::RNG::UNIFORM, 0, 256);
  for (int y = 0; y < 40; ++y)
    for (int x = 0; x < 50; ++x) slope.at<float>(y, x) = 0.1f * x + 0.1f * y;
  EXPECT_TRUE(same(median_at_jumps(slope, image, 5), slope));
}

TEST(JumpMedian, PassesOverWhatIsNotFinite) {
  cv::Mat map(20, 20, CV_32FC1, cv::Scalar(5)), image(20, 20, CV_8UC3, cv::Scalar::all(50));
  map.colRange(10, 20).setTo(25);
  map.at<float>(10, 8) = std::numeric_limits<float>::quiet_NaN();
  map.at<float>(4, 12) = INFINITY;
  const cv::Mat found = median_at_jumps(map, image, 5);
  EXPECT_TRUE(std::isnan(found.at<float>(10, 8)));
  EXPECT_EQ(found.at<float>(4, 12), INFINITY);
  for (int y = 0; y < 20; ++y)
    for (int x = 0; x < 20; ++x) {
      if (std::isfinite(map.at<float>(y, x))) {
        EXPECT_TRUE(found.at<float>(y, x) == 5 || found.at<float>(y, x) == 25);
      }
    }
  EXPECT_TRUE(median_at_jumps(cv::Mat(0, 0, CV_32FC1), cv::Mat(0, 0, CV_8UC3), 5).empty());
  test::error_of(ErrorKind::kUsage, [&] { median_at_jumps(map, image.rowRange(0, 9), 5); });
  test::error_of(ErrorKind::kUsage, [&] { median_at_jumps(image, image, 5); });
  test::error_of(ErrorKind::kUsage, [&] { median_at_jumps(map, image, 17); });
}

// The matcher ends with it, on the view's own image and at the size of the result.
TEST(JumpMedian, EndsAMatch) {
  cv::Mat left(72, 110, CV_8UC3), right(72, 110, CV_8UC3);
  cv::RNG(8).fill(left, cv::RNG::UNIFORM, 0, 256);
  cv::RNG(9).fill(right, cv::RNG::UNIFORM, 0, 256);
  auto load = [](const char* median) {
    return Matcher::load("formula:fast",
                         {.device = "cpu", .max_disp = 64, .set = {median, "match.enlarge=128"}});
  };
  const Matcher with = load("match.median=3"), without = load("match.median=0");
  cv::Mat small;
  cv::resize(right, small, {55, 36}, 0, 0, cv::INTER_AREA);
  struct Case {
    MatchOptions how;
    const cv::Mat& image;
  };
  for (const auto& [how, image] : std::vector<Case>{{{}, left},
                                                    {{.scale = 1}, left},
                                                    {{.view = View::kRight}, right},
                                                    {{.view = View::kRight, .scale = 0.5}, small},
                                                    {{.scale = 0.5, .full_size = true}, left}}) {
    const Disparity raw = without.match(left, right, how), found = with.match(left, right, how);
    EXPECT_TRUE(same(found.map, median_at_jumps(raw.map, image, 3)));
    EXPECT_FALSE(same(found.map, raw.map)) << "the case shows nothing";
    EXPECT_TRUE(same(found.confidence, raw.confidence));
  }
  test::error_of(ErrorKind::kModel, [&] { load("match.median=17"); });
}

}  // namespace
}  // namespace nmrf
