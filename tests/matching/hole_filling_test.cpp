// What is done to a map after the network.
#include "matching/finish.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <opencv2/imgproc.hpp>
#include <set>
#include <vector>

#include "nmrf/matcher.h"
#include "support/mats.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::mirrored;
using test::same;

// Medians at jumps by sorting each window, for maps of finite values.
cv::Mat by_sorting(const cv::Mat& map, const cv::Mat& image, int radius) {
  cv::Mat out = map.clone();
  auto window = [&](int y, int x, int reach, auto&& visit) {
    for (int v = std::max(0, y - reach); v <= std::min(map.rows - 1, y + reach); ++v)
      for (int u = std::max(0, x - reach); u <= std::min(map.cols - 1, x + reach); ++u) visit(v, u);
  };
  auto at_a_jump = [&](int y, int x) {
    bool found = false;
    window(y, x, 1, [&](int v, int u) {
      found |= (v == y || u == x) && std::abs(map.at<float>(v, u) - map.at<float>(y, x)) > 1;
    });
    return found;
  };
  for (int y = 0; y < map.rows; ++y)
    for (int x = 0; x < map.cols; ++x) {
      bool near = false;
      window(y, x, 2, [&](int v, int u) { near |= at_a_jump(v, u); });
      if (!near) continue;
      std::vector<std::pair<float, long>> voters;
      long total = 0;
      window(y, x, radius, [&](int v, int u) {
        int difference = 0;
        for (int c = 0; c < 3; ++c)
          difference += std::abs(image.at<cv::Vec3b>(y, x)[c] - image.at<cv::Vec3b>(v, u)[c]);
        const long weight = std::max(1L, std::lround(4096 * std::exp(-difference / 30.0)));
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
      rng.fill(image, cv::RNG::UNIFORM, levels == 6 ? 0 : 100, levels == 6 ? 256 : 160);
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
    for (int x = 0; x < 50; ++x) slope.at<float>(y, x) = 0.4f * x + 0.9f * y;
  EXPECT_TRUE(same(median_at_jumps(slope, image, 5), slope));
}

// A wall of disparity 4, and before it a board of 20 from column 60 to 89: the right view shows
// nothing of the wall in the 16 columns left of the board, and of the wall's first 4 columns.
class Unseen : public testing::Test {
 protected:
  void SetUp() override {
    image_.colRange(60, 90).setTo(cv::Scalar(160, 140, 120));
    truth_.colRange(60, 90).setTo(20);
  }
  cv::Mat image_{40, 120, CV_8UC3, cv::Scalar(40, 50, 60)};
  cv::Mat truth_{40, 120, CV_32FC1, cv::Scalar(4)};
};

TEST_F(Unseen, WhatIsRightStays) {
  EXPECT_TRUE(same(fill_unseen(truth_, image_, 5), truth_));
  EXPECT_TRUE(same(fill_unseen(truth_, image_, 0), truth_));
}

TEST_F(Unseen, HiddenPixelsAreFarther) {
  cv::Mat map = truth_.clone();
  for (int x = 50; x < 60; ++x)  // between the two surfaces
    map.col(x).setTo(static_cast<float>(x - 42));
  EXPECT_TRUE(same(fill_unseen(map, image_, 5), truth_));
  // What looks like the board, but lies behind it, is not of it.
  image_.colRange(50, 60).setTo(cv::Scalar(160, 140, 120));
  EXPECT_TRUE(same(fill_unseen(map, image_, 5), truth_));
}

TEST_F(Unseen, TheBorderContinuesWhatIsBesideIt) {
  const cv::Mat wall(40, 120, CV_32FC1, cv::Scalar(30));
  const cv::Mat plain(40, 120, CV_8UC3, cv::Scalar(40, 50, 60));
  for (float wrong : {3.f, 50.f}) {  // behind what the wall hides; beyond the edge
    cv::Mat map = wall.clone();
    map.colRange(0, 29).setTo(wrong);
    EXPECT_TRUE(same(fill_unseen(map, plain, 5), wall)) << wrong;
  }
  // A slim pole hides little: the ground left of it is seen, and stays.
  cv::Mat map(40, 120, CV_32FC1, cv::Scalar(6));
  map.colRange(25, 28).setTo(30);
  const cv::Mat found = fill_unseen(map, plain, 5);
  EXPECT_TRUE(same(found.colRange(6, 25), map.colRange(6, 25)));
}

// An object at the left edge, too near to be in the right view. Where the wall stood there instead
// the right view would show it, so the object is not filled with the wall.
TEST_F(Unseen, WhatIsTooNearForTheOtherViewStays) {
  truth_.colRange(0, 20).setTo(30);
  EXPECT_TRUE(same(fill_unseen(truth_, image_, 5), truth_));
  cv::Mat map = truth_.clone();
  map.colRange(3, 9).setTo(70);
  EXPECT_TRUE(same(fill_unseen(map, image_, 5), truth_)) << "what is beside it continues";
}

TEST_F(Unseen, OddShapes) {
  for (const auto& [height, width] :
       std::vector<std::pair<int, int>>{{1, 1}, {1, 50}, {33, 1}, {7, 9}, {31, 77}}) {
    cv::Mat image(height, width, CV_8UC3), map(height, width, CV_32FC1);
    cv::RNG rng(7);
    rng.fill(image, cv::RNG::UNIFORM, 0, 256);
    rng.fill(map, cv::RNG::UNIFORM, 0, 2.0 * width);
    const std::set<float> before(map.begin<float>(), map.end<float>());
    const cv::Mat found = fill_unseen(map, image, 5);
    for (float value : cv::Mat_<float>(found)) EXPECT_TRUE(before.count(value)) << value;
  }
}

TEST(Finish, PassesOverWhatIsNotFinite) {
  cv::Mat map(20, 20, CV_32FC1, cv::Scalar(5)), image(20, 20, CV_8UC3, cv::Scalar::all(50));
  map.colRange(10, 20).setTo(25);
  map.at<float>(10, 8) = std::numeric_limits<float>::quiet_NaN();
  map.at<float>(4, 12) = INFINITY;
  map.at<float>(9, 9) = -INFINITY;
  for (auto* finish : {median_at_jumps, fill_unseen}) {
    const cv::Mat found = finish(map, image, 5);
    EXPECT_TRUE(std::isnan(found.at<float>(10, 8)));
    EXPECT_EQ(found.at<float>(4, 12), INFINITY);
    EXPECT_EQ(found.at<float>(9, 9), -INFINITY);
    for (int y = 0; y < 20; ++y)
      for (int x = 0; x < 20; ++x)
        if (std::isfinite(map.at<float>(y, x))) {
          EXPECT_TRUE(found.at<float>(y, x) == 5 || found.at<float>(y, x) == 25);
        }
    EXPECT_TRUE(finish(cv::Mat(0, 0, CV_32FC1), cv::Mat(0, 0, CV_8UC3), 5).empty());
    test::error_of(ErrorKind::kUsage, [&] { finish(map, image.rowRange(0, 9), 5); });
    test::error_of(ErrorKind::kUsage, [&] { finish(image, image, 5); });
    test::error_of(ErrorKind::kUsage, [&] { finish(map, image, 17); });
    test::error_of(ErrorKind::kUsage, [&] { finish(map, image, -1); });
  }
}

// The matcher ends with both, on the view's own image and at the size of the result.
TEST(Finish, EndsAMatch) {
  cv::Mat left(72, 110, CV_8UC3), right(72, 110, CV_8UC3);
  cv::RNG(8).fill(left, cv::RNG::UNIFORM, 0, 256);
  cv::RNG(9).fill(right, cv::RNG::UNIFORM, 0, 256);
  auto load = [](const char* fill, const char* median) {
    return Matcher::load(
        "formula:fast",
        {.device = "cpu", .max_disp = 64, .set = {fill, median, "match.enlarge=128"}});
  };
  const Matcher with = load("match.fill=4", "match.median=3");
  const Matcher without = load("match.fill=0", "match.median=0");
  cv::Mat small;
  cv::resize(mirrored(right), small, {55, 36}, 0, 0, cv::INTER_AREA);
  struct Case {
    MatchOptions how;
    cv::Mat image;  // as seen in the mirror for the right view
  };
  const std::vector<Case> cases{{{}, left},
                                {{.scale = 1}, left},
                                {{.view = View::kRight}, mirrored(right)},
                                {{.view = View::kRight, .scale = 0.5}, small},
                                {{.scale = 0.5, .full_size = true}, left}};
  for (const auto& [how, image] : cases) {
    const Disparity raw = without.match(left, right, how), found = with.match(left, right, how);
    const bool turned = how.view == View::kRight;
    const cv::Mat map = turned ? mirrored(raw.map) : raw.map;
    const cv::Mat filled = fill_unseen(map, image, 4);
    const cv::Mat expected = median_at_jumps(filled, image, 3);
    EXPECT_TRUE(same(found.map, turned ? mirrored(expected) : expected));
    EXPECT_FALSE(same(filled, map)) << "the case shows nothing";
    EXPECT_FALSE(same(expected, filled)) << "the case shows nothing";
    EXPECT_TRUE(same(found.confidence, raw.confidence));
  }
  test::error_of(ErrorKind::kModel, [&] { load("match.fill=0", "match.median=17"); });
  test::error_of(ErrorKind::kModel, [&] { load("match.fill=-1", "match.median=5"); });
}

}  // namespace
}  // namespace nmrf
