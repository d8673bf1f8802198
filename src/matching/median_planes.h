// Maps and images in the layout of kernels/window_median.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/thread_pool.h"
#include "kernels/window_median.h"
#include "nmrf/image.h"
#include "nmrf/map.h"

namespace nmrf {

// Memory that only grows. Contents are unspecified, and pages that nobody writes to cost nothing.
template <class T>
class GrowingBuffer {
 public:
  T* need(std::size_t count) {
    if (count > capacity_) {
      values_ = std::unique_ptr<T[]>(new T[count]);  // not set to zero
      capacity_ = count;
    }
    return values_.get();
  }
  T* data() { return values_.get(); }
  const T* data() const { return values_.get(); }

 private:
  std::unique_ptr<T[]> values_;
  std::size_t capacity_ = 0;
};

// A map and its image with the margins that windows need.
class PaddedPlanes {
 public:
  // Throws Error(kUsage) unless `image` is 8-bit RGB of the map's size and 0 <= radius <= 16.
  static void check_input(const FloatMap& map, const ImageView& image, int radius);

  // Copies both; the margins never vote.
  void prepare(const FloatMap& map, const ImageView& image, int radius, ThreadPool& pool);

  const kernels::MedianPlanes& planes() const { return planes_; }
  float* row(int y) { return values_.data() + offset(y); }

  // Of every plane of this layout.
  std::size_t size() const {
    return static_cast<std::size_t>(planes_.height) * static_cast<std::size_t>(planes_.stride);
  }
  std::ptrdiff_t offset(int y) const { return y * planes_.stride + kernels::kLeftMargin; }

 private:
  kernels::MedianPlanes planes_;
  GrowingBuffer<float> values_;
  GrowingBuffer<std::uint32_t> colours_;
};

}  // namespace nmrf
