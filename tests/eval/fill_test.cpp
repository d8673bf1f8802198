// Holes filled the KITTI way, against a slow reading of the rule.
#include "eval/fill.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/rng.h"
#include "support/support.h"

namespace nmrf {
namespace {

constexpr float kHole = std::numeric_limits<float>::infinity();

cv::Mat row_of(std::initializer_list<float> values) {
  cv::Mat row(1, static_cast<int>(values.size()), CV_32FC1);
  std::copy(values.begin(), values.end(), row.ptr<float>());
  return row;
}

void expect_equal(const cv::Mat& got, const cv::Mat& want) {
  ASSERT_EQ(got.size(), want.size());
  for (int y = 0; y < want.rows; ++y)
    for (int x = 0; x < want.cols; ++x)
      EXPECT_EQ(got.at<float>(y, x), want.at<float>(y, x)) << "at " << x << ", " << y;
}

// Each pixel looks for its own neighbours.
cv::Mat slow_fill(const cv::Mat& map) {
  cv::Mat rows = map.clone();
  for (int y = 0; y < map.rows; ++y)
    for (int x = 0; x < map.cols; ++x) {
      if (std::isfinite(map.at<float>(y, x))) continue;
      float left = kHole, right = kHole;
      for (int i = x; i >= 0 && !std::isfinite(left); --i) left = map.at<float>(y, i);
      for (int i = x; i < map.cols && !std::isfinite(right); ++i) right = map.at<float>(y, i);
      if (!std::isfinite(left)) left = kHole;
      if (!std::isfinite(right)) right = kHole;
      rows.at<float>(y, x) = std::min(left, right);
    }
  cv::Mat all = rows.clone();
  for (int x = 0; x < map.cols; ++x)
    for (int y = 0; y < map.rows; ++y) {
      if (std::isfinite(rows.at<float>(y, x))) continue;
      float above = kHole, below = kHole;
      for (int i = 0; i < y; ++i)
        if (std::isfinite(rows.at<float>(i, x))) above = rows.at<float>(i, x);
      for (int i = map.rows - 1; i > y; --i)
        if (std::isfinite(rows.at<float>(i, x))) below = rows.at<float>(i, x);
      const bool inside = std::isfinite(above) && std::isfinite(below);
      if (!inside) all.at<float>(y, x) = std::min(above, below);
    }
  return all;
}

TEST(Fill, RowTakesTheSmallerBorder) {
  expect_equal(fill_background(row_of({kHole, 5, kHole, kHole, 3, kHole, 8, kHole})),
               row_of({5, 5, 3, 3, 3, 3, 8, 8}));
}

TEST(Fill, NanAndMinusInfinityAreHoles) {
  expect_equal(fill_background(row_of({4, std::nanf(""), -kHole, 2})), row_of({4, 2, 2, 2}));
}

TEST(Fill, EmptyRowsAboveAndBelowAreCopied) {
  cv::Mat map(5, 2, CV_32FC1, cv::Scalar(kHole));
  map.at<float>(1, 0) = 7;
  map.at<float>(3, 1) = 9;
  cv::Mat filled = fill_background(map);
  EXPECT_EQ(filled.at<float>(0, 1), 7);
  EXPECT_EQ(filled.at<float>(4, 0), 9);
  EXPECT_TRUE(std::isinf(filled.at<float>(2, 0)));  // the kit does not bridge rows
  EXPECT_TRUE(std::isinf(map.at<float>(0, 0)));     // the input is left alone
}

TEST(Fill, NothingComesFromNothing) {
  cv::Mat map(3, 4, CV_32FC1, cv::Scalar(kHole));
  EXPECT_EQ(cv::countNonZero(fill_background(map) < 1e30f), 0);
}

TEST(Fill, AgreesWithTheSlowForm) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Rng rng(seed);
    cv::Mat map(static_cast<int>(rng.integer(1, 9)), static_cast<int>(rng.integer(1, 13)),
                CV_32FC1);
    const double holes = rng.uniform(0.2, 0.98);
    for (int y = 0; y < map.rows; ++y)
      for (int x = 0; x < map.cols; ++x)
        map.at<float>(y, x) =
            rng.chance(holes) ? kHole : static_cast<float>(rng.integer(0, 50)) / 4;
    SCOPED_TRACE(seed);
    expect_equal(fill_background(map), slow_fill(map));
  }
}

TEST(Fill, OtherTypesAreRefused) {
  const std::string message = test::error_of(
      ErrorKind::kUsage, [] { fill_background(cv::Mat(2, 2, CV_16UC1, cv::Scalar(1))); });
  EXPECT_NE(message.find("float"), std::string::npos);
}

}  // namespace
}  // namespace nmrf
