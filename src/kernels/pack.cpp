#include "kernels/pack.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pack.cpp"
#include <hwy/foreach_target.h>

// After foreach_target.h, which includes this file once for each instruction set.
#include <algorithm>
#include <cstring>

#include "kernels/gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nmrf::tokens::HWY_NAMESPACE {

// Four rows of four floats, `from_stride` apart, to four columns.
HWY_INLINE void transpose_4x4(const float* from, std::size_t from_stride, float* to,
                              std::size_t to_stride) {
#if HWY_TARGET == HWY_SCALAR
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) to[j * to_stride + i] = from[i * from_stride + j];
#else
  const hn::FixedTag<float, 4> d;
  const auto r0 = hn::LoadU(d, from), r1 = hn::LoadU(d, from + from_stride);
  const auto r2 = hn::LoadU(d, from + 2 * from_stride), r3 = hn::LoadU(d, from + 3 * from_stride);
  const auto even_low = hn::InterleaveLower(d, r0, r2), odd_low = hn::InterleaveLower(d, r1, r3);
  const auto even_high = hn::InterleaveUpper(d, r0, r2), odd_high = hn::InterleaveUpper(d, r1, r3);
  hn::StoreU(hn::InterleaveLower(d, even_low, odd_low), d, to);
  hn::StoreU(hn::InterleaveUpper(d, even_low, odd_low), d, to + to_stride);
  hn::StoreU(hn::InterleaveLower(d, even_high, odd_high), d, to + 2 * to_stride);
  hn::StoreU(hn::InterleaveUpper(d, even_high, odd_high), d, to + 3 * to_stride);
#endif
}

void transpose_panels(const float* w, std::size_t stride, std::size_t k, std::size_t n,
                      std::size_t depth, std::size_t offset, float* packed) {
  for (std::size_t begin = 0; begin < n; begin += kPanel) {
    const std::size_t width = panel_width(n, begin), valid = std::min(width, n - begin);
    float* panel = packed + begin * depth + offset * width;
    std::size_t column = 0;
    for (; column + 4 <= valid; column += 4) {
      const float* from = w + (begin + column) * stride;
      std::size_t row = 0;
      for (; row + 4 <= k; row += 4)
        transpose_4x4(from + row, stride, panel + row * width + column, width);
      for (; row < k; ++row)
        for (int i = 0; i < 4; ++i) panel[row * width + column + i] = from[i * stride + row];
    }
    for (; column < width; ++column)
      for (std::size_t row = 0; row < k; ++row)
        panel[row * width + column] = column < valid ? w[(begin + column) * stride + row] : 0.0f;
  }
}

void copy_panels(const float* w, std::size_t stride, std::size_t k, std::size_t n, float* packed) {
  for (std::size_t begin = 0; begin < n; begin += kPanel) {
    const std::size_t width = panel_width(n, begin), valid = std::min(width, n - begin);
    float* panel = packed + begin * k;
    for (std::size_t row = 0; row < k; ++row, panel += width) {
      std::memcpy(panel, w + row * stride + begin, valid * sizeof(float));
      std::fill(panel + valid, panel + width, 0.0f);
    }
  }
}

}  // namespace nmrf::tokens::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nmrf::tokens {

HWY_EXPORT(transpose_panels);
HWY_EXPORT(copy_panels);

void pack_transposed(const float* w, std::size_t stride, std::size_t k, std::size_t n,
                     std::size_t depth, std::size_t offset, float* packed) {
  HWY_DYNAMIC_DISPATCH(transpose_panels)(w, stride, k, n, depth, offset, packed);
}

void pack_rows(const float* w, std::size_t stride, std::size_t k, std::size_t n, float* packed) {
  HWY_DYNAMIC_DISPATCH(copy_panels)(w, stride, k, n, packed);
}

void pack_bias(const float* bias, std::size_t n, float* packed) {
  if (bias) std::copy(bias, bias + n, packed);
  std::fill(packed + (bias ? n : 0), packed + padded(n), 0.0f);
}

}  // namespace nmrf::tokens
#endif
