// Hole filling: occlusions and border occlusions.
#include "matching/hole_filling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
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

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Filled {
  FloatMap map;
  ByteMap mask;
};

Filled fill(const FloatMap& map, const Image& image, int radius, int threads = 2) {
  ThreadPool pool(threads);
  HoleFilling filling;
  Filled result{map, {}};
  filling.apply(result.map, image, radius, result.mask, pool);
  return result;
}

// The definition: column by column, windows by sorting. Slow.
class Definition {
 public:
  Definition(const FloatMap& map, const Image& image, int radius)
      : map_(map), image_(image), radius_(radius), mask_(map.width(), map.height()) {}

  Filled run() {
    const int width = map_.width(), height = map_.height();
    const FloatMap given = map_;
    shown_ = given;
    std::vector<int> inside(static_cast<std::size_t>(height));
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) {
        const float own = map_.at(y, x);
        if (!std::isfinite(own)) continue;
        const bool beyond = static_cast<float>(x) < own;
        if (beyond) inside[static_cast<std::size_t>(y)] = x + 1;
        if (!match(x, own))
          mask_.at(y, x) = kOutOfView;
        else if (hider(y, x, own))
          mask_.at(y, x) = kOccluded;
      }
    for (int x = width - 1; x >= 0; --x)
      for (int y = 0; y < height; ++y) {
        const float own = map_.at(y, x);
        if (x >= inside[static_cast<std::size_t>(y)] || !std::isfinite(own)) continue;
        if (static_cast<float>(x) < own || hider(y, x, own))
          take_median(y, x, x + 1, [&](int, int, float value) { return unseen(y, x, value); });
      }
    const FloatMap second = map_;
    shown_ = second;
    for (int x = 0; x < width; ++x)
      for (int y = 0; y < height; ++y) {
        const auto nearer = hider(y, x, second.at(y, x));
        if (!nearer) continue;
        take_median(y, x, x - radius_, [&](int v, int u, float value) {
          return value <= *nearer - 1 && (u < x || !hider(v, u, second.at(v, u))) &&
                 unseen(y, x, value);
        });
      }
    return {map_, mask_};
  }

 private:
  std::optional<long> match(int x, float value) const {
    const float at = static_cast<float>(x) - value;
    if (!(at >= 0 && at <= static_cast<float>(map_.width() - 1))) return {};
    return std::lround(at);
  }
  // The disparity of what hides (x, y) if its own is `value`.
  std::optional<float> hider(int y, int x, float value) const {
    const auto at = match(x, value);
    if (!at) return {};
    float nearest = 0;
    for (int u = 0; u < map_.width(); ++u)
      if (match(u, shown_.at(y, u)) == at) nearest = std::max(nearest, shown_.at(y, u));
    if (nearest > value + 1) return nearest;
    return {};
  }
  bool unseen(int y, int x, float value) const {
    return value > static_cast<float>(x) - 1 || hider(y, x, value);
  }
  template <class Votes>
  void take_median(int y, int x, int left, const Votes& votes) {
    std::vector<std::pair<float, long>> voters;
    long total = 0;
    for (int v = std::max(0, y - radius_); v <= std::min(map_.height() - 1, y + radius_); ++v)
      for (int u = std::max(0, left); u <= std::min(map_.width() - 1, x + radius_); ++u) {
        if (!std::isfinite(map_.at(v, u)) || !votes(v, u, map_.at(v, u))) continue;
        int difference = 0;
        for (int c = 0; c < 3; ++c)
          difference += std::abs(image_.row(y)[3 * x + c] - image_.row(v)[3 * u + c]);
        voters.emplace_back(map_.at(v, u),
                            std::max(1L, std::lround(4096 * std::exp(-difference / 30.0))));
        total += voters.back().second;
      }
    if (voters.empty()) return;
    std::sort(voters.begin(), voters.end());
    std::size_t at = 0;
    for (long sum = voters[0].second; 2 * sum < total; sum += voters[at].second) ++at;
    map_.at(y, x) = voters[at].first;
    mask_.at(y, x) |= kFilled;
  }

  FloatMap map_, shown_;
  const Image& image_;
  const int radius_;
  ByteMap mask_;
};

TEST(HoleFilling, EqualsItsDefinition) {
  int cases = 0;
  for (const auto& [width, height] :
       std::vector<std::pair<int, int>>{{1, 1}, {30, 1}, {1, 33}, {9, 7}, {47, 31}, {33, 23}})
    for (int radius : {1, 5, 16})
      for (double near : {8.0, 1.2 * width}) {
        SCOPED_TRACE(::testing::Message()
                     << width << "x" << height << " " << radius << " " << near);
        const auto seed = static_cast<std::uint64_t>(++cases);
        const Image image = cases % 2 ? noise_image(width, height, seed, 90, 130)
                                      : noise_image(width, height, seed);
        FloatMap map = noise_map(width, height, seed, 0, near);
        Rng rng(seed);
        for (float& value : map) {
          if (cases % 3 == 0) value = std::floor(value);  // equal values
          if (cases % 2 == 0 && rng.chance(0.1)) {
            const float odd[] = {kNaN, INFINITY, -INFINITY, -2.5f};
            value = odd[rng.integer(0, 3)];
          }
        }
        const Filled expected = Definition(map, image, radius).run();
        for (int threads : {1, 2, 3, 5}) {
          const Filled found = fill(map, image, radius, threads);
          EXPECT_TRUE(same(found.map, expected.map)) << threads;
          EXPECT_TRUE(found.mask == expected.mask) << threads;
        }
      }
}

// A wall of disparity 4, and before it a board of 20 from column 60 to 89: the right view shows
// nothing of the wall in the 16 columns left of the board, and of the wall's first 4 columns.
class WallAndBoard : public testing::Test {
 protected:
  void SetUp() override {
    paint(image_, 60, 90, {120, 140, 160});
    paint(truth_, 60, 90, 20.0f);
  }
  Image image_ = plain_image(120, 40, {60, 50, 40});
  FloatMap truth_{120, 40, 4};
};

TEST_F(WallAndBoard, WhatIsRightStays) {
  EXPECT_TRUE(same(fill(truth_, image_, 5).map, truth_));
  EXPECT_TRUE(same(fill(truth_, image_, 0).map, truth_));
}

TEST_F(WallAndBoard, TheMaskTellsWhatTheRightViewShows) {
  ByteMap expected(120, 40);
  paint<std::uint8_t>(expected, 0, 4, kOutOfView);
  paint<std::uint8_t>(expected, 44, 60, kOccluded);
  const Filled untouched = fill(truth_, image_, 0);
  EXPECT_TRUE(untouched.mask == expected);
  const Filled filled = fill(truth_, image_, 5);
  for (int x = 0; x < 120; ++x) {
    EXPECT_EQ(filled.mask.at(20, x) & ~kFilled, expected.at(20, x)) << x;
    EXPECT_EQ((filled.mask.at(20, x) & kFilled) != 0, expected.at(20, x) != 0) << x;
  }
  // What has no disparity has no match either.
  FloatMap map = truth_;
  paint(map, 0, 2, kInvalidDisparity);
  EXPECT_EQ(fill(map, image_, 0).mask.at(7, 1), kMatched);
}

TEST_F(WallAndBoard, HiddenPixelsAreFarther) {
  FloatMap map = truth_;
  for (int x = 50; x < 60; ++x)  // between the two surfaces
    paint(map, x, x + 1, static_cast<float>(x - 42));
  EXPECT_TRUE(same(fill(map, image_, 5).map, truth_));
  // What looks like the board, but lies behind it, is not of it.
  paint(image_, 50, 60, {120, 140, 160});
  EXPECT_TRUE(same(fill(map, image_, 5).map, truth_));
}

TEST_F(WallAndBoard, TheBorderContinuesWhatIsBesideIt) {
  const FloatMap wall(120, 40, 30);
  const Image plain = plain_image(120, 40, {60, 50, 40});
  for (float wrong : {3.f, 50.f}) {  // behind what the wall hides; beyond the edge
    FloatMap map = wall;
    paint(map, 0, 29, wrong);
    EXPECT_TRUE(same(fill(map, plain, 5).map, wall)) << wrong;
  }
  // A slim pole hides little: the ground left of it is seen, and stays.
  FloatMap map(120, 40, 6);
  paint(map, 25, 28, 30.0f);
  const FloatMap found = fill(map, plain, 5).map;
  for (int y = 0; y < 40; ++y)
    for (int x = 6; x < 25; ++x) EXPECT_EQ(found.at(y, x), map.at(y, x));
}

// An object at the left edge, too near to be in the right view. Where the wall stood there instead
// the right view would show it, so the object is not filled with the wall.
TEST_F(WallAndBoard, WhatIsTooNearForTheOtherViewStays) {
  paint(truth_, 0, 20, 30.0f);
  EXPECT_TRUE(same(fill(truth_, image_, 5).map, truth_));
  FloatMap map = truth_;
  paint(map, 3, 9, 70.0f);
  EXPECT_TRUE(same(fill(map, image_, 5).map, truth_)) << "what is beside it continues";
}

TEST(HoleFilling, InventsNoValue) {
  for (const auto& [width, height] :
       std::vector<std::pair<int, int>>{{1, 1}, {50, 1}, {1, 33}, {9, 7}, {77, 31}}) {
    const FloatMap map = noise_map(width, height, 7, 0, 2.0 * width);
    const std::set<float> before(map.begin(), map.end());
    const Filled found = fill(map, noise_image(width, height, 8), 5);
    for (float value : found.map) EXPECT_TRUE(before.count(value)) << value;
    for (std::size_t i = 0; i < map.size(); ++i)
      EXPECT_TRUE(found.map.data()[i] == map.data()[i] || (found.mask.data()[i] & kFilled));
  }
}

TEST(HoleFilling, PassesOverWhatIsNotFinite) {
  FloatMap map(20, 20, 5);
  paint(map, 10, 20, 25.0f);
  map.at(10, 8) = kNaN;
  map.at(4, 12) = INFINITY;
  map.at(9, 9) = -INFINITY;
  const FloatMap found = fill(map, plain_image(20, 20, {50, 50, 50}), 5).map;
  for (int y = 0; y < 20; ++y)
    for (int x = 0; x < 20; ++x) {
      if (std::isfinite(map.at(y, x)))
        EXPECT_TRUE(found.at(y, x) == 5 || found.at(y, x) == 25);
      else
        EXPECT_EQ(std::memcmp(&found.at(y, x), &map.at(y, x), sizeof(float)), 0);
    }
}

TEST(HoleFilling, BadInputIsNamed) {
  const FloatMap map(20, 20, 5);
  EXPECT_TRUE(fill(FloatMap(), Image(), 5).mask.empty());
  test::error_of(ErrorKind::kUsage, [&] { fill(map, Image(20, 9), 5); });
  test::error_of(ErrorKind::kUsage, [&] { fill(map, Image(20, 20, 1), 5); });
  test::error_of(ErrorKind::kUsage, [&] { fill(map, Image(20, 20), 17); });
  test::error_of(ErrorKind::kUsage, [&] { fill(map, Image(20, 20), -1); });
}

TEST(HoleFilling, AllocatesOnce) {
  ThreadPool pool(3);
  HoleFilling filling;
  ByteMap mask;
  const Image image = noise_image(61, 47, 1), small = noise_image(13, 9, 1);
  FloatMap flat(61, 47, 0), wild = noise_map(61, 47, 2, 0, 70), other = noise_map(13, 9, 2, 0, 9);
  filling.apply(flat, image, 5, mask, pool);  // without a hole
  const auto before = test::allocations();
  filling.apply(wild, image, 5, mask, pool);
  filling.apply(other, small, 16, mask, pool);
  filling.apply(wild, image, 5, mask, pool);
  EXPECT_EQ(test::allocations(), before);
}

}  // namespace
}  // namespace nmrf
