#include "matching/weighted_median.h"

#include <algorithm>
#include <cmath>

namespace nmrf {
namespace {

constexpr int kReach = 2;  // px, how far from a depth edge pixels are looked at again

// 1 where a neighbour in row y, y - 1 or y + 1 belongs to another surface. rows: with a margin of
// NaN at either side; null outside the map.
void find_edges(const float* above, const float* row, const float* below, int width,
                std::uint8_t* edges) {
  auto apart = [](float a, float b) { return std::abs(a - b) > kernels::kSurfaceStep; };
  for (int x = 0; x < width; ++x)
    edges[x] =
        static_cast<std::uint8_t>(int{apart(row[x], row[x - 1])} | int{apart(row[x], row[x + 1])});
  for (const float* other : {above, below})
    for (int x = 0; other && x < width; ++x)
      edges[x] |= static_cast<std::uint8_t>(apart(row[x], other[x]));
}

}  // namespace

void WeightedMedian::apply(FloatMap& map, const ImageView& image, int radius, ThreadPool& pool) {
  PaddedPlanes::check_input(map, image, radius);
  if (radius == 0 || map.empty()) return;
  const int height = map.height(), width = map.width();
  const auto row_size = static_cast<std::size_t>(width),
             slots = static_cast<std::size_t>(pool.threads());
  const std::size_t near_size = row_size + 2 * kReach;
  planes_.set_layout(map, radius);
  workspace_.lay_out(wanted(planes_.values(), planes_.size()),
                     wanted(planes_.colours(), planes_.size()), wanted(edges_, map.size()),
                     wanted(near_, slots * near_size), wanted(pixels_, slots * row_size),
                     wanted(results_, slots * row_size));
  planes_.copy(map, image, pool);
  std::uint8_t* edges = edges_;
  pool.share(height, 16, [&](std::int64_t begin, std::int64_t end, int) {
    for (int y = static_cast<int>(begin); y < static_cast<int>(end); ++y)
      find_edges(y > 0 ? planes_.row(y - 1) : nullptr, planes_.row(y),
                 y + 1 < height ? planes_.row(y + 1) : nullptr, width,
                 edges + static_cast<std::size_t>(y) * row_size);
  });

  pool.share(height, 1, [&](std::int64_t begin, std::int64_t end, int slot) {
    // The edges of the rows around, from column -kReach on.
    std::uint8_t* near = near_ + static_cast<std::size_t>(slot) * near_size;
    kernels::MedianPixel* pixels = pixels_ + static_cast<std::size_t>(slot) * row_size;
    float* results = results_ + static_cast<std::size_t>(slot) * row_size;
    for (int y = static_cast<int>(begin); y < static_cast<int>(end); ++y) {
      std::fill(near, near + near_size, std::uint8_t{0});
      for (int v = std::max(0, y - kReach); v <= std::min(height - 1, y + kReach); ++v) {
        const std::uint8_t* row = edges + static_cast<std::size_t>(v) * row_size;
        for (int x = 0; x < width; ++x) near[x + kReach] |= row[x];
      }
      float* values = map.row(y);
      std::size_t count = 0;
      static_assert(kReach == 2);
      for (int x = 0; x < width; ++x)
        if ((near[x] | near[x + 1] | near[x + 2] | near[x + 3] | near[x + 4]) != 0 &&
            std::isfinite(values[x]))
          pixels[count++] = {x, y};
      kernels::weighted_medians(planes_.planes(), {pixels, count}, results);
      for (std::size_t i = 0; i < count; ++i) values[pixels[i].x] = results[i];
    }
  });
}

}  // namespace nmrf
