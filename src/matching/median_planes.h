// Maps and images in the layout of kernels/window_median.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/thread_pool.h"
#include "kernels/window_median.h"
#include "nmrf/image.h"
#include "nmrf/map.h"

namespace nmrf {

// A map and its image with the margins that windows need.
class PaddedPlanes {
 public:
  // Throws Error(kUsage) unless `image` is 8-bit RGB of the map's size and 0 <= radius <= 16.
  static void check_input(const FloatMap& map, const ImageView& image, int radius);

  // The layout; its planes need size() values each, set by the owner (workspace.h).
  void set_layout(const FloatMap& map, int radius);
  float*& values() { return values_; }
  std::uint32_t*& colours() { return colours_; }
  // Copies both; the margins never vote.
  void copy(const FloatMap& map, const ImageView& image, ThreadPool& pool);

  const kernels::MedianPlanes& planes() const { return planes_; }
  float* row(int y) { return values_ + offset(y); }

  // Of every plane of this layout.
  std::size_t size() const {
    return static_cast<std::size_t>(planes_.height) * static_cast<std::size_t>(planes_.stride);
  }
  std::ptrdiff_t offset(int y) const { return y * planes_.stride + kernels::kLeftMargin; }

 private:
  kernels::MedianPlanes planes_;
  float* values_ = nullptr;
  std::uint32_t* colours_ = nullptr;
};

}  // namespace nmrf
