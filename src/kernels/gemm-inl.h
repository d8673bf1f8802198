// Matrix products on tiles that live in cache, for one instruction set (a Highway per-target
// header).
//
// Two forms serve every token-wise operator and its backward:
//   multiply:        C[rows, n]  = A[rows, k] B[k, n]    B packed in panels, A rows in place
//   multiply_outer:  C[m, n]    += P[rows, m]^T Q[rows, n]   weight gradients, both in place
#if defined(NMRF_OPS_KERNELS_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NMRF_OPS_KERNELS_GEMM_INL_H_
#undef NMRF_OPS_KERNELS_GEMM_INL_H_
#else
#define NMRF_OPS_KERNELS_GEMM_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>

#include "kernels/tiles.h"

HWY_BEFORE_NAMESPACE();
namespace nmrf::tokens::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;
using Vector = hn::Vec<Floats>;

constexpr std::size_t kLanes = hn::MaxLanes(Floats());
constexpr std::size_t kPanel = 2 * kLanes;  // columns of a packed panel
// Rows of the register tile: two accumulators a row, two panel vectors and a broadcast must fit.
#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3) || HWY_ARCH_ARM_A64
constexpr int kTileRows = 12;
#else
constexpr int kTileRows = 6;
#endif
// Rows of B multiplied at once: a panel of them and the rows of A stay in the first-level cache.
constexpr std::size_t kDepth = 256;

// Columns of the panel that begins at column n: whole panels, then half a one when that is enough.
HWY_INLINE std::size_t panel_width(std::size_t columns, std::size_t n) {
  return columns - n > kLanes ? kPanel : kLanes;
}

// Rows of a matrix multiplied from the left; `second` continues each row (columns k .. k + more).
struct Rows {
  const float* first;
  std::size_t stride;
  std::size_t k;
  const float* second = nullptr;
  std::size_t second_stride = 0;
  std::size_t more = 0;
};

// What happens to a finished product: out = relu?(product + bias + add).
struct Sink {
  float* out;
  std::size_t stride;
  const float* bias = nullptr;        // readable to a multiple of kLanes
  const float* const* add = nullptr;  // a row each, or none
  bool relu = false;
};

// The last columns of a row that end inside a vector. `part`: rows x width sums, bias included.
inline HWY_NOINLINE void finish_partly(const float* part, std::size_t width, std::size_t rows,
                                       const Sink& sink, std::size_t row, std::size_t column,
                                       std::size_t valid) {
  for (std::size_t r = 0; r < rows; ++r) {
    float* out = sink.out + (row + r) * sink.stride + column;
    const float* add = sink.add ? sink.add[row + r] + column : nullptr;
    for (std::size_t i = 0; i < valid; ++i) {
      const float value = add ? part[r * width + i] + add[i] : part[r * width + i];
      out[i] = sink.relu && value < 0 ? 0.0f : value;
    }
  }
}

// Every loop over `sum` is unrolled: an index known only at run time would put it into memory.
template <int kRows, int kVectors>
HWY_INLINE void finish(const Vector (&sum)[kRows][kVectors], const Sink& sink, std::size_t row,
                       std::size_t column, std::size_t valid) {
  const Floats d;
  const Vector zero = hn::Zero(d);
  Vector bias[kVectors];
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v)
    bias[v] = sink.bias ? hn::LoadU(d, sink.bias + column + v * kLanes) : zero;
  if (HWY_UNLIKELY(valid != kVectors * kLanes)) {
    HWY_ALIGN float part[kRows * kVectors * kLanes];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v)
        hn::Store(hn::Add(sum[r][v], bias[v]), d, part + (r * kVectors + v) * kLanes);
    finish_partly(part, kVectors * kLanes, kRows, sink, row, column, valid);
    return;
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    float* out = sink.out + (row + r) * sink.stride + column;
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      Vector value = hn::Add(sum[r][v], bias[v]);
      if (sink.add) value = hn::Add(value, hn::LoadU(d, sink.add[row + r] + column + v * kLanes));
      if (sink.relu) value = hn::Max(zero, value);  // in this order NaN stays NaN
      hn::StoreU(value, d, out + v * kLanes);
    }
  }
}

// sum += the outer product of kRows scalars and a row of a panel. Scalars are reached three a
// pointer, to spare address registers. Always inlined: `sum` must stay in registers.
template <int kRows, int kVectors>
HWY_INLINE void accumulate_step(const float* const (&at)[(kRows + 2) / 3], std::size_t stride,
                                std::size_t offset, const float* panel,
                                Vector (&sum)[kRows][kVectors]) {
  const Floats d;
  Vector b[kVectors];
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) b[v] = hn::LoadU(d, panel + v * kLanes);
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    const Vector scalar = hn::Set(d, at[r / 3][(r % 3) * stride + offset]);
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(scalar, b[v], sum[r][v]);
  }
}

// sum += A[kRows, k] panel[k, kVectors]
template <int kRows, int kVectors>
HWY_INLINE void accumulate(const float* a, std::size_t stride, std::size_t k, const float* panel,
                           Vector (&sum)[kRows][kVectors]) {
  constexpr int kGroups = (kRows + 2) / 3;
  constexpr std::size_t kWidth = kVectors * kLanes;
  const float* at[kGroups];
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g) at[g] = a + 3 * g * stride;
  for (; k >= 4; k -= 4) {
    accumulate_step<kRows, kVectors>(at, stride, 0, panel, sum);
    accumulate_step<kRows, kVectors>(at, stride, 1, panel + kWidth, sum);
    accumulate_step<kRows, kVectors>(at, stride, 2, panel + 2 * kWidth, sum);
    accumulate_step<kRows, kVectors>(at, stride, 3, panel + 3 * kWidth, sum);
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) at[g] += 4;
    panel += 4 * kWidth;
  }
  for (; k > 0; --k) {
    accumulate_step<kRows, kVectors>(at, stride, 0, panel, sum);
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) ++at[g];
    panel += kWidth;
  }
}

template <int kRows, int kVectors>
HWY_NOINLINE void multiply_block(const Rows& a, std::size_t row, const float* panel,
                                 const Sink& sink, std::size_t column, std::size_t valid) {
  Vector sum[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(Floats());
  accumulate<kRows, kVectors>(a.first + row * a.stride, a.stride, a.k, panel, sum);
  if (a.more > 0)
    accumulate<kRows, kVectors>(a.second + row * a.second_stride, a.second_stride, a.more,
                                panel + a.k * kVectors * kLanes, sum);
  finish<kRows, kVectors>(sum, sink, row, column, valid);
}

template <int kVectors>
HWY_INLINE void multiply_panel(const Rows& a, std::size_t rows, const float* panel,
                               const Sink& sink, std::size_t column, std::size_t valid) {
  std::size_t row = 0;
  for (; row + kTileRows <= rows; row += kTileRows)
    multiply_block<kTileRows, kVectors>(a, row, panel, sink, column, valid);
  if constexpr (kTileRows > 8)
    if (row + 8 <= rows) multiply_block<8, kVectors>(a, row, panel, sink, column, valid), row += 8;
  if (row + 4 <= rows) multiply_block<4, kVectors>(a, row, panel, sink, column, valid), row += 4;
  if (row + 2 <= rows) multiply_block<2, kVectors>(a, row, panel, sink, column, valid), row += 2;
  if (row < rows) multiply_block<1, kVectors>(a, row, panel, sink, column, valid);
}

// The rows of a matrix, as Sink::add wants them.
HWY_INLINE const float* const* row_pointers(const float* first, std::size_t stride,
                                            std::size_t rows, const float** pointers) {
  for (std::size_t r = 0; r < rows; ++r) pointers[r] = first + r * stride;
  return pointers;
}

// sink = a[rows, k + more] B[k + more, columns], B packed, rows <= kMostRows. Every output is one
// sum in the order of k in steps of kDepth, whatever the tiling: a token's result does not depend
// on where in a tile it lies.
inline void multiply(const Rows& a, std::size_t rows, const float* packed, std::size_t columns,
                     const Sink& sink) {
  const std::size_t depth = a.k + a.more;
  const std::size_t step = a.more == 0 ? kDepth : depth;
  const float* pointers[kMostRows];
  for (std::size_t k = 0; k < depth; k += step) {
    Rows part = a;
    Sink into = sink;
    if (depth > step) {
      part.first += k;
      part.k = std::min(step, depth - k);
      into.relu = sink.relu && k + step >= depth;
      if (k > 0) {
        into.bias = nullptr;
        into.add = row_pointers(sink.out, sink.stride, rows, pointers);
      }
    }
    for (std::size_t n = 0; n < columns; n += kPanel) {
      const std::size_t width = panel_width(columns, n);
      const std::size_t valid = std::min(width, columns - n);
      const float* panel = packed + n * depth + k * width;
      if (width == kPanel)
        multiply_panel<2>(part, rows, panel, into, n, valid);
      else
        multiply_panel<1>(part, rows, panel, into, n, valid);
    }
  }
}

template <int kRows, int kVectors>
HWY_NOINLINE void outer_block(const float* p, std::size_t p_stride, const float* q,
                              std::size_t q_stride, std::size_t rows, float* c,
                              std::size_t c_stride) {
  const Floats d;
  Vector sum[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(d);
  for (std::size_t t = 0; t < rows; ++t) {
    Vector b[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) b[v] = hn::LoadU(d, q + v * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const Vector scalar = hn::Set(d, p[r]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(scalar, b[v], sum[r][v]);
    }
    p += p_stride;
    q += q_stride;
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    float* out = c + r * c_stride;
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v)
      hn::StoreU(hn::Add(sum[r][v], hn::LoadU(d, out + v * kLanes)), d, out + v * kLanes);
  }
}

template <int kVectors>
HWY_INLINE void outer_panel(const float* p, std::size_t p_stride, std::size_t m, const float* q,
                            std::size_t q_stride, std::size_t rows, float* c,
                            std::size_t c_stride) {
  std::size_t i = 0;
  auto block = [&]<int kRows>() HWY_ATTR {
    outer_block<kRows, kVectors>(p + i, p_stride, q, q_stride, rows, c + i * c_stride, c_stride);
    i += kRows;
  };
  while (i + kTileRows <= m) block.template operator()<kTileRows>();
  if constexpr (kTileRows > 8)
    if (i + 8 <= m) block.template operator()<8>();
  if (i + 4 <= m) block.template operator()<4>();
  if (i + 2 <= m) block.template operator()<2>();
  if (i < m) block.template operator()<1>();
}

// C[m, n] += P[rows, m]^T Q[rows, n]. Rows of Q and C reach to a multiple of kLanes; what lies
// behind column n has no meaning.
inline void multiply_outer(const float* p, std::size_t p_stride, std::size_t m, const float* q,
                           std::size_t q_stride, std::size_t n, std::size_t rows, float* c,
                           std::size_t c_stride) {
  for (std::size_t j = 0; j < n; j += kPanel) {
    if (panel_width(n, j) == kPanel)
      outer_panel<2>(p, p_stride, m, q + j, q_stride, rows, c + j, c_stride);
    else
      outer_panel<1>(p, p_stride, m, q + j, q_stride, rows, c + j, c_stride);
  }
}

}  // namespace nmrf::tokens::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
