#include "viz/colormap.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <vector>

#include "core/check.h"
#include "core/quantile.h"
#include "viz/color_tables.h"

namespace nmrf {
namespace {

constexpr double kLowQuantile = 0.01;
constexpr double kHighQuantile = 0.99;

using Rgb = std::array<std::uint8_t, 3>;

void check_map(const FloatMap& disparity) {
  check(!disparity.empty(), ErrorKind::kUsage, "the disparity map is empty.");
}

// KITTI's false colours at t in [0, 1]: straight lines between eight corners of the colour cube, of
// unequal length so that the steps look alike.
Rgb kitti_color(double t) {
  constexpr int kNodes = 8;
  constexpr double weights[kNodes - 1] = {114, 185, 114, 174, 114, 185, 114};
  constexpr int rgb[kNodes][3] = {{0, 0, 0}, {0, 0, 1}, {1, 0, 0}, {1, 0, 1},
                                  {0, 1, 0}, {0, 1, 1}, {1, 1, 0}, {1, 1, 1}};
  double position = t * 1000;  // the sum of the weights
  int node = 0;
  while (node < kNodes - 2 && position > weights[node]) position -= weights[node++];
  const double part = std::min(position / weights[node], 1.0);
  Rgb color{};
  for (std::size_t c = 0; c < 3; ++c)
    color[c] = static_cast<std::uint8_t>(
        std::lround(255 * ((1 - part) * rgb[node][c] + part * rgb[node + 1][c])));
  return color;
}

// The colours of a map at 256 even steps.
std::array<Rgb, 256> color_table(Colormap map) {
  std::array<Rgb, 256> table{};
  const auto& listed = map == Colormap::kTurbo     ? kTurboTable
                       : map == Colormap::kInferno ? kInfernoTable
                                                   : kJetTable;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const std::uint32_t rgb = listed[i];
    table[i] = map == Colormap::kKitti
                   ? kitti_color(static_cast<double>(i) / 255)
                   : Rgb{static_cast<std::uint8_t>(rgb >> 16), static_cast<std::uint8_t>(rgb >> 8),
                         static_cast<std::uint8_t>(rgb)};
  }
  return table;
}

}  // namespace

ColorRange robust_range(const FloatMap& disparity) {
  check_map(disparity);
  std::vector<float> valid;
  valid.reserve(disparity.size());
  std::copy_if(disparity.begin(), disparity.end(), std::back_inserter(valid),
               [](float value) { return std::isfinite(value); });
  if (valid.empty()) return {};
  ColorRange range{quantile(valid, kLowQuantile), quantile(valid, kHighQuantile)};
  // A flat map: any step above will do, but it must be one that a float can hold.
  if (!(range.hi > range.lo)) range.hi = range.lo + std::max(1.0f, std::abs(range.lo) * 1e-3f);
  return range;
}

Image colorize(const FloatMap& disparity, Colormap map, std::optional<ColorRange> range) {
  check_map(disparity);
  const ColorRange used = range ? *range : robust_range(disparity);
  check(std::isfinite(used.lo) && std::isfinite(used.hi) && used.lo < used.hi, ErrorKind::kUsage,
        "the colour range [{}, {}] is empty; give a lower and a higher disparity in pixels.",
        used.lo, used.hi);
  const auto table = color_table(map);
  const double scale = 255.0 / (static_cast<double>(used.hi) - used.lo);
  Image picture(disparity.width(), disparity.height());
  std::uint8_t* to = picture.data();
  for (float value : disparity) {
    Rgb color{};  // black
    if (std::isfinite(value)) {
      const double step = std::clamp((static_cast<double>(value) - used.lo) * scale, 0.0, 255.0);
      color = table[static_cast<std::size_t>(std::lround(step))];
    }
    to = std::copy(color.begin(), color.end(), to);
  }
  return picture;
}

}  // namespace nmrf
