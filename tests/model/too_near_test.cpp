// Things at the left edge that are too near for the right view.
#include "model/too_near.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <opencv2/imgproc.hpp>
#include <vector>

#include "nmrf/matcher.h"
#include "support/mats.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::mirrored;
using test::same;

const cv::Scalar kColour(60, 160, 200);

// A wall of disparity 4 that the map knows; things are put before it.
class TooNear : public testing::Test {
 protected:
  static constexpr int kHeight = 70, kWidth = 150;
  void SetUp() override {
    cv::Mat wall(kHeight, kWidth + 4, CV_8UC3);
    cv::RNG(5).fill(wall, cv::RNG::UNIFORM, 70, 100);
    left_ = wall.colRange(0, kWidth).clone();
    right_ = wall.colRange(4, kWidth + 4).clone();
  }
  cv::Mat found() const { return put_out_of_view(map_, left_, right_); }

  cv::Mat left_, right_;
  cv::Mat map_{kHeight, kWidth, CV_32FC1, cv::Scalar(4)};
};

// All of `thing`, which touches the left edge, but for its rim; nothing beside it.
void expect_lifted(const cv::Mat& found, const cv::Mat& before, const cv::Rect& thing,
                   float value) {
  for (int y = 0; y < found.rows; ++y)
    for (int x = 0; x < found.cols; ++x) {
      const float now = found.at<float>(y, x);
      const bool inside =
          y >= thing.y + 4 && y < thing.y + thing.height - 4 && x < thing.x + thing.width - 4;
      const bool outside =
          y < thing.y - 2 || y >= thing.y + thing.height + 2 || x >= thing.x + thing.width + 2;
      if (inside) {
        ASSERT_NEAR(now, value, 2) << y << " " << x;
      } else if (outside) {
        ASSERT_EQ(now, before.at<float>(y, x)) << y << " " << x;
      }
    }
}

TEST_F(TooNear, WhatOnlyTheLeftViewShowsIsPutOutOfTheRight) {
  const cv::Rect thing(0, 20, 30, 30);
  left_(thing).setTo(kColour);
  expect_lifted(found(), map_, thing, 30);
}

TEST_F(TooNear, WhatIsHiddenByTheMapsAccountMayBeOfTheThing) {
  // A board of 34 from column 44 on hides the wall from column 14 on: there the map claims nothing.
  left_.colRange(44, 70).setTo(cv::Scalar(180, 60, 60));
  right_.colRange(10, 36).setTo(cv::Scalar(180, 60, 60));
  map_.colRange(44, 70).setTo(34);
  const cv::Rect thing(0, 20, 36, 30);
  left_(thing).setTo(kColour);
  expect_lifted(found(), map_, thing, 36);
}

TEST_F(TooNear, WhatThePartnersShowStays) {
  EXPECT_TRUE(same(found(), map_));
  // The wall seen through noise, and by a camera that is exposed otherwise.
  cv::Mat noise(right_.size(), CV_8UC3);
  cv::RNG(6).fill(noise, cv::RNG::UNIFORM, 0, 12);
  right_ += noise;
  EXPECT_TRUE(same(found(), map_));
  right_ += cv::Scalar(40, 40, 40);
  EXPECT_TRUE(same(found(), map_));
}

TEST_F(TooNear, WhatTheRightViewShowsElsewhereStays) {
  cv::Mat thing(30, 35, CV_8UC3);  // of 10 px, which the map does not know
  cv::RNG(7).fill(thing, cv::RNG::UNIFORM, 100, 256);
  thing.copyTo(left_(cv::Rect(0, 20, 35, 30)));
  thing.colRange(10, 35).copyTo(right_(cv::Rect(0, 20, 25, 30)));
  EXPECT_TRUE(same(found(), map_));
}

TEST_F(TooNear, OtherGroupsStay) {
  const cv::Mat plain = left_.clone();
  // Away from the edge; past a third of the view; too few pixels.
  for (const auto& thing :
       {cv::Rect(12, 20, 25, 30), cv::Rect(0, 20, 60, 30), cv::Rect(0, 20, 14, 12)}) {
    plain.copyTo(left_);
    left_(thing).setTo(kColour);
    EXPECT_TRUE(same(found(), map_)) << thing;
  }
  // An L, as of two things.
  plain.copyTo(left_);
  left_(cv::Rect(0, 4, 5, 60)).setTo(kColour);
  left_(cv::Rect(0, 58, 46, 6)).setTo(kColour);
  EXPECT_TRUE(same(found(), map_));
}

TEST_F(TooNear, PassesOverWhatIsNotFinite) {
  const cv::Rect thing(0, 20, 30, 30);
  left_(thing).setTo(kColour);
  map_.at<float>(35, 9) = std::numeric_limits<float>::quiet_NaN();
  map_.at<float>(36, 10) = INFINITY;
  map_.at<float>(37, 11) = -INFINITY;
  cv::Mat lifted = found();
  EXPECT_TRUE(std::isnan(lifted.at<float>(35, 9)));
  EXPECT_EQ(lifted.at<float>(36, 10), INFINITY);
  EXPECT_EQ(lifted.at<float>(37, 11), -INFINITY);
  for (int i = 0; i < 3; ++i) lifted.at<float>(35 + i, 9 + i) = 30;
  expect_lifted(lifted, map_, thing, 30);
}

TEST(TooNearInput, OddShapesAndWrongOnes) {
  for (const auto& [height, width] :
       std::vector<std::pair<int, int>>{{1, 1}, {1, 50}, {33, 2}, {7, 9}, {31, 77}}) {
    cv::Mat left(height, width, CV_8UC3), right(height, width, CV_8UC3),
        map(height, width, CV_32FC1);
    cv::RNG rng(7);
    rng.fill(left, cv::RNG::UNIFORM, 0, 256);
    right.setTo(cv::Scalar(0, 0, 0));
    rng.fill(map, cv::RNG::UNIFORM, 0, 2.0 * width);
    EXPECT_EQ(put_out_of_view(map, left, right).size(), map.size());
  }
  EXPECT_TRUE(
      put_out_of_view(cv::Mat(0, 0, CV_32FC1), cv::Mat(0, 0, CV_8UC3), cv::Mat(0, 0, CV_8UC3))
          .empty());
  const cv::Mat map(9, 9, CV_32FC1, cv::Scalar(1)), image(9, 9, CV_8UC3, cv::Scalar(1, 1, 1));
  test::error_of(ErrorKind::kUsage, [&] { put_out_of_view(map, image, image.rowRange(0, 8)); });
  test::error_of(ErrorKind::kUsage, [&] { put_out_of_view(map, image.rowRange(0, 8), image); });
  test::error_of(ErrorKind::kUsage, [&] { put_out_of_view(image, image, image); });
}

// The matcher does it with the images of the map's size, for either view.
TEST(TooNearInput, IsPartOfAMatch) {
  cv::Mat left(80, 168, CV_8UC3), right;
  cv::RNG(8).fill(left, cv::RNG::UNIFORM, 100, 110);
  right = left.clone();
  left(cv::Rect(0, 20, 34, 40)).setTo(cv::Scalar(20, 20, 240));
  right(cv::Rect(134, 20, 34, 40)).setTo(cv::Scalar(20, 240, 20));
  auto load = [](const char* border) {
    return Matcher::load("formula:fast", {.device = "cpu",
                                          .max_disp = 64,
                                          .set = {border, "match.fill=0", "match.median=0",
                                                  "match.enlarge=128", "match.guide=false"}});
  };
  const Matcher with = load("match.border=true"), without = load("match.border=false");
  auto half = [](const cv::Mat& image) {
    cv::Mat out;
    cv::resize(image, out, {84, 40}, 0, 0, cv::INTER_AREA);
    return out;
  };
  struct Case {
    MatchOptions how;
    cv::Mat own, other;  // as seen in the mirror for the right view
  };
  const std::vector<Case> cases{
      {{.scale = 1}, left, right},
      {{}, left, right},
      {{.scale = 0.5, .full_size = true}, left, right},
      {{.scale = 0.5}, half(left), half(right)},
      {{.view = View::kRight, .scale = 1}, mirrored(right), mirrored(left)}};
  int changed = 0;
  for (const auto& [how, own, other] : cases) {
    const cv::Mat raw = without.match(left, right, how).map, map = with.match(left, right, how).map;
    const bool turned = how.view == View::kRight;
    const cv::Mat expected = put_out_of_view(turned ? mirrored(raw) : raw, own, other);
    EXPECT_TRUE(same(map, turned ? mirrored(expected) : expected));
    changed += !same(map, raw);
  }
  EXPECT_GE(changed, 3) << "the cases show nothing";
}

}  // namespace
}  // namespace nmrf
