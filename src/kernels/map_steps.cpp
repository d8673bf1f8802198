#include "kernels/map_steps.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/map_steps.cpp"
#include <hwy/foreach_target.h>

// After foreach_target.h, which includes this file once for each instruction set.
#include <algorithm>
#include <cstring>

#include "kernels/maps-inl.h"
#include "kernels/pointwise-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nmrf::conv::HWY_NAMESPACE {

void norm_rows(const float* x, std::size_t channels, const float* weight, const float* bias,
               float eps, float* y, std::size_t begin, std::size_t end) {
  float mean, scale;
  for (std::size_t r = begin; r < end; ++r)
    gemm::normalise_rows(x + r * channels, channels, 1, channels, weight, bias, eps,
                         y + r * channels, channels, &mean, &scale);
}

// The taps of a 3 x 3 window around `at` that lie inside.
struct Taps {
  std::size_t first, last;
  Taps(std::size_t at, std::size_t size) : first(at == 0 ? 1 : 0), last(at + 1 < size ? 2 : 1) {}
};

void max_pool(const float* x, std::size_t height, std::size_t width, std::size_t channels, float* y,
              std::size_t begin, std::size_t end) {
  const std::size_t half = (width + 1) / 2;
  for (std::size_t r = begin; r < end; ++r) {
    const Taps rows(2 * r, height);
    for (std::size_t c = 0; c < half; ++c) {
      const Taps columns(2 * c, width);
      float* to = y + (r * half + c) * channels;
      for_vectors(channels, [&](const auto& lanes, std::size_t at) HWY_ATTR {
        Vector most = lanes.load(x + (2 * r * width + 2 * c) * channels + at);
        for (std::size_t i = rows.first; i <= rows.last; ++i)
          for (std::size_t j = columns.first; j <= columns.last; ++j)
            most = hn::Max(
                most, lanes.load(x + ((2 * r + i - 1) * width + 2 * c + j - 1) * channels + at));
        lanes.store(most, to + at);
      });
    }
  }
}

void depthwise(const float* x, std::size_t height, std::size_t width, std::size_t channels,
               const float* taps, const float* bias, float* y, std::size_t begin, std::size_t end) {
  for (std::size_t r = begin; r < end; ++r) {
    const Taps rows(r, height);
    for (std::size_t c = 0; c < width; ++c) {
      const Taps columns(c, width);
      for_vectors(channels, [&](const auto& lanes, std::size_t at) HWY_ATTR {
        Vector sum = lanes.load(bias + at);
        for (std::size_t i = rows.first; i <= rows.last; ++i)
          for (std::size_t j = columns.first; j <= columns.last; ++j)
            sum = hn::MulAdd(lanes.load(x + ((r + i - 1) * width + c + j - 1) * channels + at),
                             lanes.load(taps + (3 * i + j) * channels + at), sum);
        lanes.store(gemm::gelu(sum), y + (r * width + c) * channels + at);
      });
    }
  }
}

}  // namespace nmrf::conv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nmrf::conv {

HWY_EXPORT(norm_rows);
HWY_EXPORT(max_pool);
HWY_EXPORT(depthwise);

void layer_norm(const float* x, std::size_t channels, const float* weight, const float* bias,
                float eps, float* y, std::size_t begin, std::size_t end) {
  HWY_DYNAMIC_DISPATCH(norm_rows)(x, channels, weight, bias, eps, y, begin, end);
}

void max_pool_3x3(const float* x, std::size_t height, std::size_t width, std::size_t channels,
                  float* y, std::size_t begin, std::size_t end) {
  HWY_DYNAMIC_DISPATCH(max_pool)(x, height, width, channels, y, begin, end);
}

void depthwise_3x3_gelu(const float* x, std::size_t height, std::size_t width, std::size_t channels,
                        const float* taps, const float* bias, float* y, std::size_t begin,
                        std::size_t end) {
  HWY_DYNAMIC_DISPATCH(depthwise)(x, height, width, channels, taps, bias, y, begin, end);
}

void gather_2x2(const float* from, std::size_t width, std::size_t channels, float* to,
                std::size_t begin, std::size_t end) {
  const std::size_t bytes = channels * sizeof(float);
  for (std::size_t r = begin; r < end; ++r)
    for (std::size_t c = 0; c < width / 2; ++c) {
      const float* upper = from + (2 * r * width + 2 * c) * channels;
      const float* lower = upper + width * channels;
      float* cell = to + (r * (width / 2) + c) * 4 * channels;
      std::memcpy(cell, upper, bytes);
      std::memcpy(cell + channels, lower, bytes);
      std::memcpy(cell + 2 * channels, upper + channels, bytes);
      std::memcpy(cell + 3 * channels, lower + channels, bytes);
    }
}

}  // namespace nmrf::conv
#endif
