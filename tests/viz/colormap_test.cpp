#include "viz/colormap.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/rng.h"
#include "io/maps.h"
#include "nmrf/disparity.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::error_of;

using test::row_map;
using Rgb = std::array<std::uint8_t, 3>;

Rgb color(const Image& image, int y, int x) {
  const std::uint8_t* from = image.row(y) + 3 * x;
  return {from[0], from[1], from[2]};
}

const Rgb kBlack{};

// The colours that other programs paint: first, 52nd and last, and a sum over all 256.
TEST(Colormap, WellKnownTables) {
  struct Case {
    Colormap map;
    Rgb colors[3];
    std::uint32_t sum;
  };
  for (const Case& c :
       {Case{Colormap::kTurbo, {{48, 18, 59}, {62, 155, 254}, {122, 4, 3}}, 3872654146u},
        Case{Colormap::kInferno, {{0, 0, 4}, {66, 10, 104}, {252, 255, 164}}, 430509974u},
        Case{Colormap::kJet, {{0, 0, 128}, {0, 76, 255}, {128, 0, 0}}, 3122650240u}}) {
    const Image picture = colorize(row_map({10, 12, 20}), c.map, ColorRange{10, 20});
    ASSERT_EQ(picture.channels(), 3);
    ASSERT_EQ(picture.order(), ChannelOrder::kRgb);
    for (int x = 0; x < 3; ++x) EXPECT_EQ(color(picture, 0, x), c.colors[x]) << enum_name(c.map);
    FloatMap ramp(256, 1);
    for (int x = 0; x < 256; ++x) ramp.at(0, x) = static_cast<float>(x);
    const Image all = colorize(ramp, c.map, ColorRange{0, 255});
    std::uint32_t sum = 0;
    for (int x = 0; x < 256; ++x) {
      const Rgb rgb = color(all, 0, x);
      sum += static_cast<std::uint32_t>(x + 1) *
             (std::uint32_t{rgb[0]} << 16 | std::uint32_t{rgb[1]} << 8 | rgb[2]);
    }
    EXPECT_EQ(sum, c.sum) << enum_name(c.map);
  }
}

TEST(Colormap, KittiNodes) {
  // The corners black, blue, red, magenta, green, cyan, yellow, white at the sums of the weights.
  const FloatMap nodes = row_map({0, 114, 299, 413, 587, 701, 886, 1000});
  const std::vector<Rgb> rgb = {{0, 0, 0},   {0, 0, 255},   {255, 0, 0},   {255, 0, 255},
                                {0, 255, 0}, {0, 255, 255}, {255, 255, 0}, {255, 255, 255}};
  const Image picture = colorize(nodes, Colormap::kKitti, ColorRange{0, 1000});
  for (std::size_t i = 0; i < rgb.size(); ++i)
    for (std::size_t c = 0; c < 3; ++c)  // 256 steps hit a node within half of 1000 / 255
      EXPECT_NEAR(color(picture, 0, static_cast<int>(i))[c], rgb[i][c], 255 * 2.0 / 114) << i;
  // Half way from black to blue, and from blue to red.
  const Image between = colorize(row_map({57, 206.5f}), Colormap::kKitti, ColorRange{0, 1000});
  EXPECT_NEAR(color(between, 0, 0)[2], 128, 5);
  EXPECT_EQ(color(between, 0, 0)[0], 0);
  EXPECT_NEAR(color(between, 0, 1)[2], 128, 4);
  EXPECT_NEAR(color(between, 0, 1)[0], 128, 4);
}

TEST(Colormap, ClampsAndBlackens) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const auto& entry : EnumNames<Colormap>::values) {
    const Colormap map = entry.first;
    const Image ends = colorize(row_map({0, 10}), map, ColorRange{0, 10});
    const Image picture = colorize(
        row_map({-5, -1e30f, 11, 1e30f, inf, -inf, std::numeric_limits<float>::quiet_NaN()}), map,
        ColorRange{0, 10});
    EXPECT_EQ(color(picture, 0, 0), color(ends, 0, 0));
    EXPECT_EQ(color(picture, 0, 1), color(ends, 0, 0));
    EXPECT_EQ(color(picture, 0, 2), color(ends, 0, 1));
    EXPECT_EQ(color(picture, 0, 3), color(ends, 0, 1));
    for (int x = 4; x < 7; ++x) EXPECT_EQ(color(picture, 0, x), kBlack);
    EXPECT_NE(color(ends, 0, 0), color(ends, 0, 1));
  }
}

TEST(Colormap, RobustRangeIgnoresOutliersAndInvalid) {
  FloatMap map(101, 10, kInvalidDisparity);
  std::vector<float> valid;
  Rng random(3);
  for (int x = 0; x < 101; ++x)
    for (int y = 0; y < 7; ++y) {
      map.at(y, x) = static_cast<float>(random.uniform(5.0, 50.0));
      if (x == 50 && y < 3) map.at(y, x) = 1e6f;
      if (x == 51 && y < 3) map.at(y, x) = -1e6f;
      valid.push_back(map.at(y, x));
    }
  std::sort(valid.begin(), valid.end());
  const ColorRange range = robust_range(map);
  EXPECT_EQ(range.lo, valid[7]);    // 0.01 * 706 = 7.06
  EXPECT_EQ(range.hi, valid[699]);  // 0.99 * 706 = 698.94
  EXPECT_GE(range.lo, 5.0f);
  EXPECT_LE(range.hi, 50.0f);
  // Without a range the picture takes this one.
  test::expect_same_bits(colorize(map, Colormap::kTurbo), colorize(map, Colormap::kTurbo, range));
}

TEST(Colormap, FlatAndEmptyMaps) {
  const ColorRange none = robust_range(FloatMap(3, 3, kInvalidDisparity));
  EXPECT_EQ(none.lo, 0);
  EXPECT_EQ(none.hi, 1);
  test::expect_same_bits(colorize(FloatMap(3, 3, kInvalidDisparity), Colormap::kJet), Image(3, 3));
  for (float value : {0.0f, 7.5f, 1e30f, -4.0f}) {
    const ColorRange flat = robust_range(FloatMap(1, 1, value));
    EXPECT_EQ(flat.lo, value);
    EXPECT_GT(flat.hi, flat.lo);
    EXPECT_EQ(colorize(FloatMap(1, 1, value), Colormap::kTurbo).width(), 1);
  }
}

TEST(Colormap, Refuses) {
  const FloatMap map = row_map({1, 2});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (ColorRange range :
       {ColorRange{1, 1}, ColorRange{2, 1}, ColorRange{nan, 1}, ColorRange{0, kInvalidDisparity}})
    error_of(ErrorKind::kUsage, [&] { colorize(map, Colormap::kTurbo, range); });
  error_of(ErrorKind::kUsage, [&] { colorize(FloatMap(), Colormap::kTurbo); });
  error_of(ErrorKind::kUsage, [&] { robust_range(FloatMap()); });
}

}  // namespace
}  // namespace nmrf
