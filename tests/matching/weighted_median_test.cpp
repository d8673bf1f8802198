// Edge-aware weighted median.
#include "matching/weighted_median.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "matching/allocations.h"
#include "matching/pictures.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::noise_image;
using test::noise_map;
using test::paint;
using test::plain_image;
using test::same;

FloatMap median(const FloatMap& map, const Image& image, int radius, int threads = 2) {
  ThreadPool pool(threads);
  WeightedMedian filter;
  FloatMap result = map;
  filter.apply(result, image, radius, pool);
  return result;
}

// By sorting each window, for maps of finite values.
FloatMap by_sorting(const FloatMap& map, const Image& image, int radius) {
  FloatMap out = map;
  auto window = [&](int y, int x, int reach, auto&& visit) {
    for (int v = std::max(0, y - reach); v <= std::min(map.height() - 1, y + reach); ++v)
      for (int u = std::max(0, x - reach); u <= std::min(map.width() - 1, x + reach); ++u)
        visit(v, u);
  };
  auto at_an_edge = [&](int y, int x) {
    bool found = false;
    window(y, x, 1, [&](int v, int u) {
      found |= (v == y || u == x) && std::abs(map.at(v, u) - map.at(y, x)) > 1;
    });
    return found;
  };
  for (int y = 0; y < map.height(); ++y)
    for (int x = 0; x < map.width(); ++x) {
      bool near = false;
      window(y, x, 2, [&](int v, int u) { near |= at_an_edge(v, u); });
      if (!near) continue;
      std::vector<std::pair<float, long>> voters;
      long total = 0;
      window(y, x, radius, [&](int v, int u) {
        int difference = 0;
        for (int c = 0; c < 3; ++c)
          difference += std::abs(image.row(y)[3 * x + c] - image.row(v)[3 * u + c]);
        const long weight = std::max(1L, std::lround(4096 * std::exp(-difference / 30.0)));
        voters.emplace_back(map.at(v, u), weight);
        total += weight;
      });
      std::sort(voters.begin(), voters.end());
      long sum = 0;
      for (const auto& [value, weight] : voters)
        if (2 * (sum += weight) >= total) {
          out.at(y, x) = value;
          break;
        }
    }
  return out;
}

TEST(WeightedMedian, EqualsSorting) {
  for (const auto& [height, width, radius] : std::vector<std::array<int, 3>>{
           {1, 1, 5}, {1, 40, 3}, {37, 1, 5}, {23, 31, 5}, {40, 57, 1}, {19, 26, 16}}) {
    for (int levels : {2, 6, 1000}) {  // few: many equal values
      SCOPED_TRACE(::testing::Message()
                   << height << "x" << width << " " << radius << " " << levels);
      const Image image =
          levels == 6 ? noise_image(width, height, 5) : noise_image(width, height, 5, 100, 160);
      FloatMap map = noise_map(width, height, 6, 0, levels);
      for (float& value : map) value = std::floor(value) * 20.0f / static_cast<float>(levels);
      const FloatMap expected = by_sorting(map, image, radius);
      for (int threads : {1, 2, 3, 5})
        EXPECT_TRUE(same(median(map, image, radius, threads), expected)) << threads;
      EXPECT_TRUE(same(median(map, image, 0), map));
    }
  }
}

// A jagged step of disparity on a straight edge between two colours.
TEST(WeightedMedian, StraightensAnEdge) {
  Image image = plain_image(80, 60, {90, 60, 30});
  paint(image, 40, 80, {140, 100, 120});
  FloatMap truth(80, 60, 10);
  paint(truth, 40, 80, 30.0f);
  FloatMap jagged = truth;
  for (int y = 0; y < 60; y += 8)  // as cells of 4 x 4 leave it
    for (int v = y; v < std::min(60, y + 4); ++v)
      for (int x = 0; x < 2; ++x) jagged.at(v, (y % 16 ? 40 : 38) + x) = y % 16 ? 10 : 30;
  ASSERT_FALSE(same(jagged, truth));
  EXPECT_TRUE(same(median(jagged, image, 5), truth));
  // A step two pixels beside the edge moves to it; without an edge it stays.
  FloatMap beside = truth;
  paint(beside, 38, 40, 30.0f);
  EXPECT_TRUE(same(median(beside, image, 5), truth));
  EXPECT_TRUE(same(median(beside, plain_image(80, 60, {99, 99, 99}), 5), beside));
}

TEST(WeightedMedian, LeavesSlopesAlone) {
  FloatMap slope(50, 40);
  for (int y = 0; y < 40; ++y)
    for (int x = 0; x < 50; ++x)
      slope.at(y, x) = 0.4f * static_cast<float>(x) + 0.9f * static_cast<float>(y);
  EXPECT_TRUE(same(median(slope, noise_image(50, 40, 3), 5), slope));
}

TEST(WeightedMedian, PassesOverWhatIsNotFinite) {
  FloatMap map(20, 20, 5);
  const Image image = plain_image(20, 20, {50, 50, 50});
  paint(map, 10, 20, 25.0f);
  map.at(10, 8) = std::numeric_limits<float>::quiet_NaN();
  map.at(4, 12) = INFINITY;
  map.at(9, 9) = -INFINITY;
  const FloatMap found = median(map, image, 5);
  for (int y = 0; y < 20; ++y)
    for (int x = 0; x < 20; ++x) {
      if (std::isfinite(map.at(y, x)))
        EXPECT_TRUE(found.at(y, x) == 5 || found.at(y, x) == 25);
      else
        EXPECT_EQ(std::memcmp(&found.at(y, x), &map.at(y, x), sizeof(float)), 0);
    }
  const FloatMap nothing(9, 7, std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(same(median(nothing, noise_image(9, 7, 1), 5), nothing));
}

TEST(WeightedMedian, BadInputIsNamed) {
  const FloatMap map(20, 20, 5);
  EXPECT_TRUE(median(FloatMap(), Image(), 5).empty());
  test::error_of(ErrorKind::kUsage, [&] { median(map, Image(20, 9), 5); });
  test::error_of(ErrorKind::kUsage, [&] { median(map, Image(20, 20, 1), 5); });
  test::error_of(ErrorKind::kUsage, [&] { median(map, Image(20, 20), 17); });
  test::error_of(ErrorKind::kUsage, [&] { median(map, Image(20, 20), -1); });
}

TEST(WeightedMedian, AllocatesOnce) {
  ThreadPool pool(3);
  WeightedMedian filter;
  const Image image = noise_image(61, 47, 1), small = noise_image(13, 9, 1);
  FloatMap map = noise_map(61, 47, 2, 0, 40), other = noise_map(13, 9, 2, 0, 9);
  filter.apply(map, image, 5, pool);
  const auto before = test::allocations();
  filter.apply(map, image, 5, pool);
  filter.apply(other, small, 16, pool);
  filter.apply(map, image, 16, pool);
  EXPECT_EQ(test::allocations(), before);
}

}  // namespace
}  // namespace nmrf
