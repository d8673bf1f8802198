#include "matching/median_planes.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/check.h"

namespace nmrf {

using kernels::kLeftMargin;
using kernels::kMostMedianRadius;
using kernels::kRightMargin;

void PaddedPlanes::check_input(const FloatMap& map, const ImageView& image, int radius) {
  check(map.empty() || (image.channels == 3 && image.bits == 8 && image.width == map.width() &&
                        image.height == map.height()),
        ErrorKind::kUsage,
        "a disparity map is post-processed with its 8-bit RGB image, of its size");
  check(radius >= 0 && radius <= kMostMedianRadius, ErrorKind::kUsage,
        "the radius of a median is {}; expected 0 to {}", radius, kMostMedianRadius);
}

void PaddedPlanes::set_layout(const FloatMap& map, int radius) {
  planes_.stride = kLeftMargin + map.width() + kRightMargin;
  planes_.width = map.width();
  planes_.height = map.height();
  planes_.radius = radius;
}

void PaddedPlanes::copy(const FloatMap& map, const ImageView& image, ThreadPool& pool) {
  planes_.values = values_ + kLeftMargin;
  planes_.colours = colours_ + kLeftMargin;
  pool.share(map.height(), 16, [&](std::int64_t begin, std::int64_t end, int) {
    constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
    const int width = map.width();
    for (int y = static_cast<int>(begin); y < static_cast<int>(end); ++y) {
      float* values = row(y);
      std::fill(values - kLeftMargin, values, kNone);
      std::copy(map.row(y), map.row(y) + width, values);
      std::fill(values + width, values + width + kRightMargin, kNone);
      std::uint32_t* colours = colours_ + offset(y);
      std::fill(colours - kLeftMargin, colours, 0u);
      const std::uint8_t* pixel = image.row(y);
      for (int x = 0; x < width; ++x, pixel += 3)
        colours[x] = static_cast<std::uint32_t>(pixel[0] | pixel[1] << 8 | pixel[2] << 16);
      std::fill(colours + width, colours + width + kRightMargin, 0u);
    }
  });
}

}  // namespace nmrf
