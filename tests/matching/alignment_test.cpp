// Small errors of rectification: measured to a fraction of a pixel, and corrected only where sure.
#include "matching/alignment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/rng.h"
#include "kernels/remap.h"
#include "matching/allocations.h"
#include "matching/pair_warps.h"
#include "nmrf/checks.h"
#include "nmrf/matcher.h"
#include "nmrf/sequence.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::moved;
using test::slanted_plane;

// What a camera with this error sees instead of the image.
Image misaligned(const Image& image, const Alignment& error) {
  const double mx = (image.width() - 1) / 2.0, my = (image.height() - 1) / 2.0;
  // The inverse of aligned(), by iteration.
  return test::warped(image, image.width(), image.height(), [&](int column, int row) {
    double x = column - mx, y = row - my;
    for (int i = 0; i < 20; ++i) {
      const double u = column - mx + error.turn * y - error.scale * x;
      y = row - my - error.offset - error.turn * x - error.scale * y - error.keystone * x * y;
      x = u;
    }
    return test::Point{x + mx, y + my};
  });
}

// Bicubic interpolation by its definition.
double plain_cubic(const Image& image, double x, double y, int channel) {
  auto weight = [](double t) {
    constexpr double a = -0.75;
    t = std::abs(t);
    if (t < 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
    return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0.0;
  };
  x = std::clamp(x, 0.0, image.width() - 1.0);
  y = std::clamp(y, 0.0, image.height() - 1.0);
  double sum = 0;
  for (int v = static_cast<int>(y) - 1; v <= static_cast<int>(y) + 2; ++v)
    for (int u = static_cast<int>(x) - 1; u <= static_cast<int>(x) + 2; ++u)
      sum += weight(x - u) * weight(y - v) *
             image.row(std::clamp(
                 v, 0, image.height() - 1))[3 * std::clamp(u, 0, image.width() - 1) + channel];
  return std::clamp(sum, 0.0, 255.0);
}

TEST(Remap, EqualsItsDefinition) {
  Rng rng(3);
  for (const auto& [width, height] : std::vector<std::pair<int, int>>{{1, 1}, {2, 5}, {37, 23}}) {
    const Image image = test::noise_image(width, height, 5);
    std::vector<float> x, y;
    for (int i = 0; i < 300; ++i) {
      x.push_back(static_cast<float>(rng.uniform() * (width + 4) - 2));
      y.push_back(static_cast<float>(rng.uniform() * (height + 4) - 2));
    }
    const kernels::RemapSource source{image.data(), static_cast<std::ptrdiff_t>(image.row_bytes()),
                                      width, height};
    std::vector<std::uint8_t> result(3 * x.size()), black(3 * x.size());
    kernels::remap(source, x.data(), y.data(), 300, kernels::RemapBorder::kReplicate,
                   result.data());
    kernels::remap(source, x.data(), y.data(), 300, kernels::RemapBorder::kBlack, black.data());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const bool outside =
          x[i] < -0.5f || y[i] < -0.5f || x[i] > width - 0.5f || y[i] > height - 0.5f;
      for (std::size_t c = 0; c < 3; ++c) {
        EXPECT_NEAR(result[3 * i + c], plain_cubic(image, x[i], y[i], static_cast<int>(c)), 0.51);
        EXPECT_EQ(black[3 * i + c], outside ? 0 : result[3 * i + c]);
      }
    }
  }
}

TEST(Alignment, NoneLeavesTheImageAsItIs) {
  const Image image = test::noise_image(61, 43, 8);
  const Image same = aligned(image, Alignment());
  EXPECT_TRUE(std::equal(image.data(), image.data() + image.row_bytes() * 43, same.data()));
}

TEST(Alignment, IsMeasuredToAFractionOfAPixel) {
  const auto [left, right] = slanted_plane(640, 400, 30);
  const std::vector<Alignment> errors{{1, 0, 0, 0},      {-2.3, 0, 0, 0},       {0.7, 0, 0, 0},
                                      {15, 0, 0, 0},     {0.5, 0.008, 0, 0},    {0, -0.02, 0, 0},
                                      {1, 0, 0.01, 0},   {-1, 0.01, -0.008, 0}, {2, 0.005, 0, 0},
                                      {0, 0, 0, -4.5e-5}};
  for (const Alignment& error : errors) {
    const PairCheck check = check_pair(left, misaligned(right, error));
    const Alignment& found = check.alignment;
    SCOPED_TRACE(testing::Message() << error.offset << " " << error.turn << " " << error.scale
                                    << " " << error.keystone << ", found " << found.offset << " "
                                    << found.turn << " " << found.scale << " " << found.keystone);
    EXPECT_TRUE(check.correctable);
    const Alignment rest{found.offset - error.offset, found.turn - error.turn,
                         found.scale - error.scale, found.keystone - error.keystone};
    EXPECT_LT(rest.vertical_rms(640, 400), 0.12);
    // What is corrected is not corrected again.
    EXPECT_FALSE(check_pair(left, aligned(misaligned(right, error), found)).correctable);
  }
}

TEST(Alignment, LargeImagesAreMeasuredInTheirOwnPixels) {
  const auto [left, right] = slanted_plane(2400, 900, 100);
  const PairCheck check = check_pair(left, moved(right, 3));
  EXPECT_TRUE(check.correctable);
  EXPECT_NEAR(check.alignment.offset, 3, 0.2);
  EXPECT_FALSE(check_pair(left, right).correctable);
}

TEST(Alignment, IsLeftAloneUnlessSure) {
  const auto [left, right] = slanted_plane(640, 400, 30);
  EXPECT_FALSE(check_pair(left, right).correctable) << "nothing is wrong";
  EXPECT_FALSE(check_pair(left, moved(right, 0.2)).correctable) << "too little to matter";
  EXPECT_FALSE(check_pair(left, moved(right, 40)).correctable)
      << "this is no nearly rectified pair";
  EXPECT_FALSE(check_pair(left, test::turned(right, 8)).correctable);
  EXPECT_FALSE(check_pair(left, test::noise_image(640, 400, 5)).correctable) << "unrelated";
  const Image flat = test::plain_image(640, 400, {90, 90, 90});
  EXPECT_FALSE(check_pair(flat, flat).correctable);
  // Texture in one corner only: what the rest of the image does is unknown.
  Image corner = flat, corner_right = flat;
  const Image lower = moved(right, 2);
  for (int y = 0; y < 110; ++y) {
    std::copy_n(left.row(y), 3 * 160, corner.row(y));
    std::copy_n(lower.row(y), 3 * 160, corner_right.row(y));
  }
  EXPECT_FALSE(check_pair(corner, corner_right).correctable);
}

bool same(const FloatMap& a, const FloatMap& b) { return a == b; }

TEST(Alignment, MatcherCorrectsTheRightImage) {
  const auto [left, right] = slanted_plane(320, 200, 30);
  const Image lower = moved(right, 2);
  const Matcher matcher = Matcher::load("formula:fast");
  MatchOptions plain, corrected;
  plain.scale = corrected.scale = 1;
  corrected.align = true;
  const Disparity good = matcher.match(left, right, corrected);
  EXPECT_TRUE(good.alignment.none());
  EXPECT_TRUE(same(good.map, matcher.match(left, right, plain).map)) << "bit for bit";

  const Disparity found = matcher.match(left, lower, corrected);
  EXPECT_NEAR(found.alignment.offset, 2, 0.15);
  EXPECT_FALSE(same(found.map, matcher.match(left, lower, plain).map));
  EXPECT_TRUE(same(found.map, matcher.match(left, aligned(lower, found.alignment), plain).map));
  // Given, it is not measured, in either view.
  for (View view : {View::kLeft, View::kRight}) {
    MatchOptions given = plain;
    given.view = plain.view = view;
    given.alignment = found.alignment;
    EXPECT_TRUE(same(matcher.match(left, lower, given).map,
                     matcher.match(left, aligned(lower, found.alignment), plain).map));
  }
}

TEST(Alignment, GivenOnesAllocateNothing) {
  const auto [left, right] = slanted_plane(160, 96, 10);
  const Matcher matcher = Matcher::load("formula:fast");
  MatchOptions how;
  how.alignment = Alignment{1.5, 0.01, 0, 0};
  Disparity result;
  for (int i = 0; i < 8; ++i) matcher.match(left, right, how, result);
  const std::size_t before = test::allocations();
  matcher.match(left, right, how, result);
  EXPECT_EQ(test::allocations() - before, 0u);
}

TEST(Alignment, SequencesKeepThatOfTheFirstFrame) {
  const auto [left, right] = slanted_plane(320, 200, 30);
  const Matcher matcher = Matcher::load("formula:fast");
  MatchOptions how;
  how.scale = 1;
  how.align = true;
  Sequence sequence(matcher, how);
  const Alignment first = sequence.next(left, moved(right, 2)).alignment;
  EXPECT_NEAR(first.offset, 2, 0.15);
  EXPECT_EQ(sequence.next(left, right).alignment, first);
  sequence.restart();
  EXPECT_TRUE(sequence.next(left, right).alignment.none());
}

}  // namespace
}  // namespace nmrf
