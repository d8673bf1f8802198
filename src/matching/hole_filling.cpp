#include "matching/hole_filling.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace nmrf {
namespace {

using kernels::kMostMedianRadius;

constexpr float kSeen = std::numeric_limits<float>::infinity();

// Calls f(y) for every row, in parallel.
template <class F>
void for_rows(ThreadPool& pool, int height, const F& f) {
  pool.share(height, 16, [&](std::int64_t begin, std::int64_t end, int) {
    for (int y = static_cast<int>(begin); y < static_cast<int>(end); ++y) f(y);
  });
}

}  // namespace

// For as many holes as there are pixels, so that no map needs more than another of its size.
void HoleFilling::reserve() {
  const auto width = static_cast<std::size_t>(planes_.planes().width);
  const auto height = static_cast<std::size_t>(planes_.planes().height);
  const std::size_t pixels = width * height, plane = planes_.size(),
                    rows = height + 2 * kMostMedianRadius;
  workspace_.lay_out(wanted(planes_.values(), plane), wanted(planes_.colours(), plane),
                     wanted(nearest_, plane), wanted(hider_, plane), wanted(inside_, height),
                     wanted(row_counts_, height), wanted(row_columns_, pixels),
                     wanted(offsets_, width + 1),  // there are not more levels than columns
                     wanted(levels_, pixels), wanted(by_column_, pixels), wanted(by_level_, pixels),
                     wanted(last_column_, rows), wanted(last_level_, rows),
                     wanted(results_, pixels));
}

// What the right view shows, row by row.
void HoleFilling::look(const FloatMap& map, ByteMap* mask, ThreadPool& pool) {
  const int width = map.width();
  const auto last = static_cast<float>(width - 1);
  for_rows(pool, map.height(), [&](int y) {
    const float* row = map.row(y);
    float* nearest = nearest_ + planes_.offset(y);
    float* hider = hider_ + planes_.offset(y);
    inside_[y] = kernels::look_from_right(row, width, nearest, hider);
    if (!mask) return;
    std::uint8_t* states = mask->row(y);
    for (int x = 0; x < width; ++x) {
      const float at = static_cast<float>(x) - row[x];
      const bool outside = std::isfinite(row[x]) && !(at >= 0 && at <= last);
      states[x] = outside ? kOutOfView : hider[x] != kSeen ? kOccluded : kMatched;
    }
  });
}

// Lists the holes of each row, and returns how many there are.
std::size_t HoleFilling::collect(const FloatMap& map, Holes holes, ThreadPool& pool) {
  const int width = map.width(), height = map.height();
  std::int32_t* counts = row_counts_;
  for_rows(pool, height, [&](int y) {
    std::int32_t* columns = row_columns_ + static_cast<std::ptrdiff_t>(y) * width;
    const float *row = map.row(y), *hider = hider_ + planes_.offset(y);
    std::int32_t count = 0;
    if (holes == Holes::kBorder) {
      for (int x = 0; x < inside_[y]; ++x) {
        columns[count] = x;
        count += std::isfinite(row[x]) && (static_cast<float>(x) < row[x] || hider[x] != kSeen);
      }
    } else {
      for (int x = 0; x < width; ++x) {
        columns[count] = x;
        count += hider[x] != kSeen;
      }
    }
    counts[y] = count;
  });
  std::size_t total = 0;
  for (int y = 0; y < height; ++y) total += static_cast<std::size_t>(counts[y]);
  return total;
}

// Holes are filled column by column, from the right at the border and else from the left, so that a
// hole finds those of its window that come before it filled. A hole's level is one more than the
// highest among those: holes of one level do not depend on each other.
void HoleFilling::schedule(Holes holes, std::size_t count) {
  const auto& planes = planes_.planes();
  const int width = planes.width, height = planes.height, radius = planes.radius;
  const bool leftwards = holes == Holes::kBorder;
  auto place = [&](int x) { return leftwards ? width - 1 - x : x; };

  // Counting sorts, by column and then by level.
  std::int32_t* offsets = offsets_;
  std::fill(offsets, offsets + width + 1, 0);
  auto for_holes = [&](const auto& f) {
    for (int y = 0; y < height; ++y) {
      const std::int32_t* columns = row_columns_ + static_cast<std::ptrdiff_t>(y) * width;
      for (int i = 0; i < row_counts_[y]; ++i) f(columns[i], y);
    }
  };
  for_holes([&](int x, int) { ++offsets[place(x) + 1]; });
  for (int i = 0; i < width; ++i) offsets[i + 1] += offsets[i];
  kernels::MedianPixel* by_column = by_column_;
  for_holes([&](int x, int y) { by_column[offsets[place(x)]++] = {x, y}; });

  // The latest hole of each row has the highest level of those within the window.
  const auto rows = static_cast<std::size_t>(height + 2 * radius);
  std::int32_t* last_column = last_column_;
  std::int32_t* last_level = last_level_;
  std::fill(last_column, last_column + rows, -2 * kMostMedianRadius);
  std::fill(last_level, last_level + rows, 0);
  std::int32_t* levels = levels_;
  level_count_ = 0;
  for (std::size_t begin = 0, end = 0; begin < count; begin = end) {
    const int now = place(by_column[begin].x);
    for (; end < count && place(by_column[end].x) == now; ++end) {
      const int y = by_column[end].y;
      std::int32_t level = 0;
      for (int v = y; v <= y + 2 * radius; ++v)
        level = std::max(level, now - last_column[v] <= radius ? last_level[v] + 1 : 0);
      levels[end] = level;
      level_count_ = std::max(level_count_, level + 1);
    }
    for (std::size_t i = begin; i < end; ++i) {
      last_column[by_column[i].y + radius] = now;
      last_level[by_column[i].y + radius] = levels[i];
    }
  }

  std::fill(offsets, offsets + level_count_ + 1, 0);
  for (std::size_t i = 0; i < count; ++i) ++offsets[levels[i] + 1];
  for (int i = 0; i < level_count_; ++i) offsets[i + 1] += offsets[i];
  kernels::MedianPixel* by_level = by_level_;
  for (std::size_t i = 0; i < count; ++i) by_level[offsets[levels[i]]++] = by_column[i];
}

void HoleFilling::fill(FloatMap& map, ByteMap& mask, Holes holes, ThreadPool& pool) {
  const std::size_t count = collect(map, holes, pool);
  if (count == 0) return;
  schedule(holes, count);
  const auto& planes = planes_.planes();
  const kernels::RightViewPlanes right{nearest_ + kernels::kLeftMargin,
                                       hider_ + kernels::kLeftMargin};
  auto* const medians =
      holes == Holes::kBorder ? kernels::border_medians : kernels::occlusion_medians;
  float* results = results_;
  std::int32_t begin = 0;
  for (std::int32_t level = 0; level < level_count_; ++level) {
    const std::int32_t end = offsets_[level];  // the sort has moved it to the level's end
    const kernels::MedianPixel* pixels = by_level_ + begin;
    pool.share(end - begin, 24, [&](std::int64_t first, std::int64_t last, int) {
      medians(planes, right, {pixels + first, pixels + last}, results + first);
    });
    for (std::int32_t i = 0; i < end - begin; ++i) {
      if (std::isnan(results[i])) continue;
      const auto [x, y] = pixels[i];
      map.at(y, x) = planes_.row(y)[x] = results[i];
      mask.at(y, x) |= kFilled;
    }
    begin = end;
  }
}

void HoleFilling::apply(FloatMap& map, const ImageView& image, int radius, ByteMap& mask,
                        ThreadPool& pool) {
  PaddedPlanes::check_input(map, image, radius);
  mask.resize(map.width(), map.height());
  if (map.empty()) return;
  planes_.set_layout(map, radius);
  reserve();
  planes_.copy(map, image, pool);
  look(map, &mask, pool);
  if (radius == 0) return;
  fill(map, mask, Holes::kBorder, pool);
  look(map, nullptr, pool);
  fill(map, mask, Holes::kOcclusion, pool);
}

}  // namespace nmrf
