// Matrix products of bytes for one instruction set; rows of activations unsigned, packed columns of
// weights signed (bytes.h).
#if defined(NMRF_KERNELS_BYTES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NMRF_KERNELS_BYTES_INL_H_
#undef NMRF_KERNELS_BYTES_INL_H_
#else
#define NMRF_KERNELS_BYTES_INL_H_
#endif

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/pointwise-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nmrf::tokens::HWY_NAMESPACE {

using Words = hn::RebindToSigned<Floats>;
using WordVector = hn::Vec<Words>;

// Sums of four products in 32 bits by one instruction; else pairs meet in 16 bits, and 255 * 63
// twice is the most that fits there.
#if HWY_TARGET == HWY_AVX3_DL
constexpr int kWeightLevels = 127;
#else
constexpr int kWeightLevels = 63;
#endif
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
constexpr int kByteTileRows = 12;
#else
constexpr int kByteTileRows = 4;
#endif

// Lane by lane, sum + a0 b0 + a1 b1 + a2 b2 + a3 b3 of four unsigned and four signed bytes.
HWY_INLINE WordVector dot4(WordVector sum, WordVector a, WordVector b) {
#if HWY_TARGET == HWY_AVX3_DL
  // Highway 1.0 detects VNNI but does not allow its intrinsics.
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
  return sum;
#elif HWY_TARGET == HWY_AVX3
  const __m512i pairs = _mm512_maddubs_epi16(a.raw, b.raw);
  return hn::Add(sum, WordVector{_mm512_madd_epi16(pairs, _mm512_set1_epi16(1))});
#elif HWY_TARGET == HWY_AVX2
  const __m256i pairs = _mm256_maddubs_epi16(a.raw, b.raw);
  return hn::Add(sum, WordVector{_mm256_madd_epi16(pairs, _mm256_set1_epi16(1))});
#elif HWY_TARGET == HWY_SSE4
  const __m128i pairs = _mm_maddubs_epi16(a.raw, b.raw);
  return hn::Add(sum, WordVector{_mm_madd_epi16(pairs, _mm_set1_epi16(1))});
#else
  const WordVector byte = hn::Set(Words(), 255);
  auto term = [&](WordVector low_a, WordVector high_b)
                  HWY_ATTR { return hn::Mul(hn::And(low_a, byte), hn::ShiftRight<24>(high_b)); };
  sum = hn::Add(sum, term(a, hn::ShiftLeft<24>(b)));
  sum = hn::Add(sum, term(hn::ShiftRight<8>(a), hn::ShiftLeft<16>(b)));
  sum = hn::Add(sum, term(hn::ShiftRight<16>(a), hn::ShiftLeft<8>(b)));
  return hn::Add(sum, term(hn::ShiftRight<24>(a), b));
#endif
}

// Rows of bytes q that stand for scale * q + low.
struct ByteRows {
  std::uint8_t* data;
  std::size_t stride;  // a multiple of 4
  std::size_t k;
  float* scales;
  float* lows;
};

// Bytes of a row and distance of rows: an odd number of cache lines.
HWY_INLINE std::size_t byte_stride(std::size_t k) {
  const std::size_t lines = (k + 63) / 64;
  return (lines + 1 - lines % 2) * 64;
}

// Packed columns of bytes, taken apart.
struct ByteColumns {
  ByteColumns(const float* packed, std::size_t n)
      : scales(packed),
        sums(packed + padded(n)),
        bytes(reinterpret_cast<const std::int32_t*>(packed + 2 * padded(n))) {}
  const float *scales, *sums;
  const std::int32_t* bytes;  // four rows of a column each
};

// A row whose least and greatest value are known. Whole vectors are read and written.
HWY_INLINE void round_row(const float* x, const ByteRows& to, std::size_t row, float low,
                          float high) {
  const Floats d;
  const hn::Rebind<std::uint8_t, Floats> bytes;
  const float range = high - low;
  const float by = range > 0 ? 255.0f / range : 0.0f;
  to.scales[row] = range / 255.0f;
  to.lows[row] = low;
  const Vector lows = hn::Set(d, low), factor = hn::Set(d, by);
  std::uint8_t* out = to.data + row * to.stride;
  for (std::size_t c = 0; c < to.k; c += kLanes) {
    const Vector level = hn::Mul(hn::Sub(hn::LoadU(d, x + c), lows), factor);
    hn::StoreU(hn::DemoteTo(bytes, hn::NearestInt(level)), bytes, out + c);
  }
}

// Rows of whole vectors: what lies behind column k has been set to values of the row.
HWY_INLINE void round_rows(const float* x, std::size_t stride, std::size_t rows,
                           const ByteRows& to) {
  const Floats d;
  for (std::size_t r = 0; r < rows; ++r, x += stride) {
    Vector low = hn::LoadU(d, x), high = low;
    for (std::size_t c = kLanes; c < to.k; c += kLanes) {
      const Vector v = hn::LoadU(d, x + c);
      low = hn::Min(low, v);
      high = hn::Max(high, v);
    }
    round_row(x, to, r, hn::GetLane(hn::MinOfLanes(d, low)), hn::GetLane(hn::MaxOfLanes(d, high)));
  }
}

// Fills the vector in which a row of k values ends.
HWY_INLINE void fill_vector(float* row, std::size_t k) {
  for (std::size_t c = k; c % kLanes != 0; ++c) row[c] = row[0];
}

// GELU to 4e-4, less than the rounding that follows.
constexpr float kCoarseLimit = 3.75f;
constexpr float kCoarseNormal[] = {1.870514391e-01f,  -8.782683231e-02f, 5.535435825e-02f,
                                   -3.202153549e-02f, 1.823219209e-02f,  -1.293073546e-02f,
                                   5.475134925e-03f};

// GELU, then bytes. Whole vectors: what lies behind column k must be finite.
HWY_INLINE void gelu_and_round_rows(float* x, std::size_t stride, std::size_t rows,
                                    const ByteRows& to) {
  const Floats d;
  for (std::size_t r = 0; r < rows; ++r, x += stride) {
    Vector low = hn::Set(d, 1e30f), high = hn::Neg(low);
    for (std::size_t c = 0; c < to.k; c += kLanes) {
      const Vector v = hn::LoadU(d, x + c);
      const Vector g = hn::Mul(v, half_plus_odd(v, kCoarseLimit, kCoarseNormal));
      hn::StoreU(g, d, x + c);
      low = hn::Min(low, g);
      high = hn::Max(high, g);
    }
    round_row(x, to, r, hn::GetLane(hn::MinOfLanes(d, low)), hn::GetLane(hn::MaxOfLanes(d, high)));
  }
}

template <int kRows, int kVectors>
HWY_NOINLINE void byte_block(const ByteRows& a, std::size_t row, const ByteColumns& b,
                             const std::int32_t* panel, const Sink& sink, std::size_t column,
                             std::size_t valid) {
  const Words dw;
  const Floats d;
  constexpr int kGroups = (kRows + 2) / 3;
  WordVector sum[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(dw);
  const std::uint8_t* at[kGroups];
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g)
    at[g] = a.data + (row + 3 * static_cast<std::size_t>(g)) * a.stride;
  for (std::size_t k = 0; k < a.k; k += 4) {
    WordVector columns[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) columns[v] = hn::LoadU(dw, panel + v * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      std::int32_t four;
      std::memcpy(&four, at[r / 3] + static_cast<std::size_t>(r % 3) * a.stride, sizeof four);
      const WordVector scalar = hn::Set(dw, four);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[r][v] = dot4(sum[r][v], scalar, columns[v]);
    }
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) at[g] += 4;
    panel += kVectors * kLanes;
  }
  Vector scale[kVectors], sums[kVectors], value[kRows][kVectors];
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    scale[v] = hn::LoadU(d, b.scales + column + v * kLanes);
    sums[v] = hn::LoadU(d, b.sums + column + v * kLanes);
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    const Vector by = hn::Set(d, a.scales[row + static_cast<std::size_t>(r)]);
    const Vector low = hn::Set(d, a.lows[row + static_cast<std::size_t>(r)]);
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v)
      value[r][v] =
          hn::MulAdd(hn::Mul(hn::ConvertTo(d, sum[r][v]), by), scale[v], hn::Mul(low, sums[v]));
  }
  finish<kRows, kVectors>(value, sink, row, column, valid);
}

template <int kVectors>
HWY_INLINE void byte_panel(const ByteRows& a, std::size_t rows, const ByteColumns& b,
                           const std::int32_t* panel, const Sink& sink, std::size_t column,
                           std::size_t valid) {
  std::size_t row = 0;
  auto block = [&]<int kRows>() HWY_ATTR {
    byte_block<kRows, kVectors>(a, row, b, panel, sink, column, valid);
    row += kRows;
  };
  while (row + kByteTileRows <= rows) block.template operator()<kByteTileRows>();
  if constexpr (kByteTileRows > 8) {
    if (row + 8 <= rows) block.template operator()<8>();
    if (row + 4 <= rows) block.template operator()<4>();
  }
  if (row + 2 <= rows) block.template operator()<2>();
  if (row < rows) block.template operator()<1>();
}

// sink = a B, B packed bytes; rows <= kMostRows.
inline void multiply_rows_of_bytes(const ByteRows& a, std::size_t rows, const float* packed,
                                   std::size_t columns, const Sink& sink) {
  const ByteColumns b(packed, columns);
  const std::size_t groups = (a.k + 3) / 4;
  for (std::size_t n = 0; n < columns; n += kPanel) {
    const std::size_t width = panel_width(columns, n), valid = std::min(width, columns - n);
    const std::int32_t* panel = b.bytes + n * groups;
    if (width == kPanel)
      byte_panel<2>(a, rows, b, panel, sink, n, valid);
    else
      byte_panel<1>(a, rows, b, panel, sink, n, valid);
  }
}

}  // namespace nmrf::tokens::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
