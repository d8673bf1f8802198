#include "viz/colormap.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <opencv2/imgproc.hpp>
#include <vector>

#include "core/check.h"
#include "core/quantile.h"

namespace nmrf {
namespace {

constexpr double kLowQuantile = 0.01;
constexpr double kHighQuantile = 0.99;

void check_map(const cv::Mat& disparity) {
  check(!disparity.empty() && disparity.dims == 2 && disparity.type() == CV_32FC1,
        ErrorKind::kUsage, "a disparity map is a 32-bit float image of one channel (CV_32FC1).");
}

// KITTI's false colours at t in [0, 1]: straight lines between eight corners of the colour cube, of
// unequal length so that the steps look alike.
cv::Vec3b kitti_color(double t) {
  constexpr int kNodes = 8;
  constexpr double weights[kNodes - 1] = {114, 185, 114, 174, 114, 185, 114};
  constexpr int bgr[kNodes][3] = {{0, 0, 0}, {1, 0, 0}, {0, 0, 1}, {1, 0, 1},
                                  {0, 1, 0}, {1, 1, 0}, {0, 1, 1}, {1, 1, 1}};
  double position = t * 1000;  // the sum of the weights
  int node = 0;
  while (node < kNodes - 2 && position > weights[node]) position -= weights[node++];
  const double part = std::min(position / weights[node], 1.0);
  cv::Vec3b color;
  for (int c = 0; c < 3; ++c)
    color[c] = static_cast<std::uint8_t>(
        std::lround(255 * ((1 - part) * bgr[node][c] + part * bgr[node + 1][c])));
  return color;
}

// The colours of a map at 256 even steps.
std::array<cv::Vec3b, 256> color_table(Colormap map) {
  std::array<cv::Vec3b, 256> table;
  if (map == Colormap::kKitti) {
    for (std::size_t i = 0; i < table.size(); ++i)
      table[i] = kitti_color(static_cast<double>(i) / 255);
    return table;
  }
  cv::Mat ramp(1, 256, CV_8UC1), colors;
  for (int i = 0; i < 256; ++i) ramp.at<std::uint8_t>(0, i) = static_cast<std::uint8_t>(i);
  cv::applyColorMap(ramp, colors,
                    map == Colormap::kTurbo     ? cv::COLORMAP_TURBO
                    : map == Colormap::kInferno ? cv::COLORMAP_INFERNO
                                                : cv::COLORMAP_JET);
  for (int i = 0; i < 256; ++i) table[static_cast<std::size_t>(i)] = colors.at<cv::Vec3b>(0, i);
  return table;
}

}  // namespace

ColorRange robust_range(const cv::Mat& disparity) {
  check_map(disparity);
  std::vector<float> valid;
  valid.reserve(disparity.total());
  for (int row = 0; row < disparity.rows; ++row) {
    const auto* values = disparity.ptr<float>(row);
    std::copy_if(values, values + disparity.cols, std::back_inserter(valid),
                 [](float value) { return std::isfinite(value); });
  }
  if (valid.empty()) return {};
  ColorRange range{quantile(valid, kLowQuantile), quantile(valid, kHighQuantile)};
  // A flat map: any step above will do, but it must be one that a float can hold.
  if (!(range.hi > range.lo)) range.hi = range.lo + std::max(1.0f, std::abs(range.lo) * 1e-3f);
  return range;
}

cv::Mat colorize(const cv::Mat& disparity, Colormap map, std::optional<ColorRange> range) {
  check_map(disparity);
  const ColorRange used = range ? *range : robust_range(disparity);
  check(std::isfinite(used.lo) && std::isfinite(used.hi) && used.lo < used.hi, ErrorKind::kUsage,
        "the colour range [{}, {}] is empty; give a lower and a higher disparity in pixels.",
        used.lo, used.hi);
  const auto table = color_table(map);
  const double scale = 255.0 / (static_cast<double>(used.hi) - used.lo);
  cv::Mat picture(disparity.size(), CV_8UC3);
  for (int row = 0; row < disparity.rows; ++row) {
    const auto* values = disparity.ptr<float>(row);
    auto* colors = picture.ptr<cv::Vec3b>(row);
    for (int col = 0; col < disparity.cols; ++col) {
      if (!std::isfinite(values[col])) {
        colors[col] = cv::Vec3b(0, 0, 0);
        continue;
      }
      const double step =
          std::clamp((static_cast<double>(values[col]) - used.lo) * scale, 0.0, 255.0);
      colors[col] = table[static_cast<std::size_t>(std::lround(step))];
    }
  }
  return picture;
}

}  // namespace nmrf
