// Left-right consistency.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "nmrf/disparity.h"
#include "support/support.h"

namespace nmrf {
namespace {

Disparity disparity(int width, int height, float value) {
  Disparity result;
  result.map = FloatMap(width, height, value);
  return result;
}

TEST(Consistency, MarksDisagreementAndOutOfView) {
  Disparity left = disparity(6, 1, 2), right = disparity(6, 1, 2);
  right.map.at(0, 2) = 5;  // the pixel that left 4 looks at
  check_consistency(left, right, View::kLeft);
  const ByteMap& mask = left.mask;
  EXPECT_EQ(mask.at(0, 0), kOutOfView);
  EXPECT_EQ(mask.at(0, 1), kOutOfView);
  EXPECT_EQ(mask.at(0, 2), kMatched);
  EXPECT_EQ(mask.at(0, 3), kMatched);
  EXPECT_EQ(mask.at(0, 4), kOccluded);
  EXPECT_EQ(mask.at(0, 5), kMatched);
  check_consistency(right, left, View::kRight);
  EXPECT_EQ(right.mask.at(0, 0), kMatched);
  EXPECT_EQ(right.mask.at(0, 2), kOutOfView);
  EXPECT_EQ(right.mask.at(0, 3), kMatched);
  EXPECT_EQ(right.mask.at(0, 5), kOutOfView);
}

TEST(Consistency, ThresholdAndRounding) {
  Disparity left = disparity(9, 2, 3), right = disparity(9, 2, 3);
  right.map.at(1, 2) = 3.75f;
  check_consistency(left, right, View::kLeft, 0.75f);
  EXPECT_EQ(left.mask.at(1, 5), kMatched) << "as much as is allowed";
  check_consistency(left, right, View::kLeft, 0.5f);
  EXPECT_EQ(left.mask.at(1, 5), kOccluded);
  EXPECT_EQ(left.mask.at(0, 5), kMatched);
  left.map.at(1, 6) = 3.5f;  // its match at 2.5 is looked up in column 3
  check_consistency(left, right, View::kLeft, 0.5f);
  EXPECT_EQ(left.mask.at(1, 6), kMatched);
}

TEST(Consistency, KeepsWhatWasFilledAndForgetsTheRest) {
  Disparity left = disparity(8, 1, 1), right = disparity(8, 1, 1);
  left.mask = ByteMap(8, 1, kFilled | kOccluded);
  check_consistency(left, right, View::kLeft);
  EXPECT_EQ(left.mask.at(0, 0), kFilled | kOutOfView);
  EXPECT_EQ(left.mask.at(0, 4), kFilled);
}

TEST(Consistency, WithoutADisparityNothingIsConfirmed) {
  Disparity left = disparity(8, 1, 1), right = disparity(8, 1, 1);
  left.map.at(0, 3) = kInvalidDisparity;
  left.map.at(0, 4) = std::numeric_limits<float>::quiet_NaN();
  right.map.at(0, 5) = kInvalidDisparity;
  check_consistency(left, right, View::kLeft);
  EXPECT_EQ(left.mask.at(0, 3), kOccluded);
  EXPECT_EQ(left.mask.at(0, 4), kOccluded);
  EXPECT_EQ(left.mask.at(0, 6), kOccluded);
  EXPECT_EQ(left.mask.at(0, 7), kMatched);
}

TEST(Consistency, OddSizes) {
  Disparity empty, one = disparity(1, 1, 0), other = disparity(1, 1, 0);
  check_consistency(empty, Disparity(), View::kLeft);
  check_consistency(one, other, View::kLeft);
  EXPECT_EQ(one.mask.at(0, 0), kMatched);
  test::error_of(ErrorKind::kUsage, [&] { check_consistency(one, empty, View::kLeft); });
}

}  // namespace
}  // namespace nmrf
