// Pieces the attention kernels share: exp2, transposition, and register-tiled products of small
// matrices. Compiled once for every SIMD target.
//
// Scores are kept transposed, [key][query]: a panel holds `kQ` queries (a few vectors) for all keys
// at hand, so that the softmax runs along whole vectors, and every product reads one operand by
// broadcast from addresses with fixed distances.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/targets.h"

#if defined(NMRF_OPS_ATTENTION_BLOCKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NMRF_OPS_ATTENTION_BLOCKS_INL_H_
#undef NMRF_OPS_ATTENTION_BLOCKS_INL_H_
#else
#define NMRF_OPS_ATTENTION_BLOCKS_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#define NMRF_UNROLL _Pragma("GCC unroll 32")

HWY_BEFORE_NAMESPACE();
namespace nmrf::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;
using V = hn::Vec<F>;
constexpr size_t kLanes = HWY_LANES(float);
// Vectors of accumulators: what 32 or 16 registers leave beside the operands.
constexpr size_t kAccumulators = kLanes == 16 ? 24 : 12;

constexpr float kLog2E = 1.44269504088896340736f;
constexpr float kLn2 = 0.693147180559945309417f;

constexpr size_t round_up(size_t n, size_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

// Hands out pieces of one scratch buffer; with a null base it only counts.
struct Arena {
  float* base;
  size_t used = 0;
  // `before`: values in front of the piece that may be written too, a multiple of 16.
  float* take(size_t count, size_t before = 0) {
    float* piece = base ? base + used + before : nullptr;
    used += round_up(before + count, 16);
    return piece;
  }
};

// 2^x for x <= 127, relative error 1e-7; exactly 0 below -126.5 and at -infinity; NaN stays NaN.
template <class D>
HWY_INLINE hn::Vec<D> exp2(D f, hn::Vec<D> x) {
  using Vector = hn::Vec<D>;
  const hn::RebindToUnsigned<D> u;
  const Vector magic = hn::Set(f, 12582912.0f + 127.0f);  // 1.5 * 2^23: the sum is an integer
  x = hn::Max(hn::Set(f, -127.0f), x);                    // this order of operands keeps NaN
  const Vector rounded = hn::Add(x, magic);
  const Vector r = hn::Sub(x, hn::Sub(rounded, magic));  // [-1/2, 1/2]
  Vector p = hn::Set(f, 0.00015345812f);
  p = hn::MulAdd(p, r, hn::Set(f, 0.00133999312f));
  p = hn::MulAdd(p, r, hn::Set(f, 0.00961848896f));
  p = hn::MulAdd(p, r, hn::Set(f, 0.0555032878f));
  p = hn::MulAdd(p, r, hn::Set(f, 0.240226469f));
  p = hn::MulAdd(p, r, hn::Set(f, 0.693147206f));
  p = hn::MulAdd(p, r, hn::Set(f, 1.0f));
  return hn::Mul(p, hn::BitCast(f, hn::ShiftLeft<23>(hn::BitCast(u, rounded))));
}
HWY_INLINE V exp2(V x) { return exp2(F(), x); }

// to[0, count) = scale * from; neither needs alignment.
HWY_INLINE void copy_scaled(const float* from, size_t count, float scale, float* to) {
  const F f;
  const V s = hn::Set(f, scale);
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    hn::StoreU(hn::Mul(hn::LoadU(f, from + i), s), f, to + i);
  for (; i < count; ++i) to[i] = scale * from[i];
}

// Rows of tokens that will be read (or written) soon. They are asked for a few at a time while
// something else is computed: tokens lie too far apart for the hardware to guess the next one, and
// all at once they would keep everything else waiting.
class Ahead {
 public:
  // `work`: what the steps until the rows are needed add up to.
  void start(size_t tokens, size_t depth, size_t work) {
    lists_ = list_ = token_ = 0;
    tokens_ = tokens;
    lines_ = (depth * sizeof(float) + 63) / 64;
    work_ = std::max<size_t>(work, 1);
    credit_ = 0;
  }
  void add(const float* data, const int64_t* offsets) {
    base_[lists_] = data;
    offset_[lists_++] = offsets;
  }
  HWY_INLINE void step(size_t work) {
    if (list_ == lists_) return;
    // Rows are due in proportion to the work done, a little ahead of it.
    for (credit_ += work * lists_ * tokens_ * 9 / 8; credit_ >= work_; credit_ -= work_) {
      const char* row = reinterpret_cast<const char*>(base_[list_] + offset_[list_][token_]);
      for (size_t line = 0; line < lines_; ++line) __builtin_prefetch(row + line * 64, 0, 2);
      if (++token_ == tokens_) {
        token_ = 0;
        if (++list_ == lists_) return;
      }
    }
  }

 private:
  static constexpr size_t kMost = 8;
  const float* base_[kMost];
  const int64_t* offset_[kMost];  // of each token
  size_t lists_ = 0, list_ = 0, token_ = 0, tokens_ = 0, lines_ = 0, work_ = 1, credit_ = 0;
};
// Rough costs of the steps, in cycles per vector of 16.
constexpr size_t kScoreWork = 20, kSoftmaxWork = 10, kProductWork = 60;

// to[c][r] = from[r][c]; rows and columns are multiples of 4.
inline void transpose(const float* from, size_t from_stride, size_t rows, size_t columns, float* to,
                      size_t to_stride) {
  const hn::FixedTag<float, 4> d;
  for (size_t r = 0; r < rows; r += 4) {
    const float* row = from + r * from_stride;
    for (size_t c = 0; c < columns; c += 4) {
      const auto a = hn::LoadU(d, row + c), b = hn::LoadU(d, row + from_stride + c);
      const auto e = hn::LoadU(d, row + 2 * from_stride + c);
      const auto g = hn::LoadU(d, row + 3 * from_stride + c);
      const auto ae_low = hn::InterleaveLower(d, a, e), ae_high = hn::InterleaveUpper(d, a, e);
      const auto bg_low = hn::InterleaveLower(d, b, g), bg_high = hn::InterleaveUpper(d, b, g);
      float* out = to + c * to_stride + r;
      hn::StoreU(hn::InterleaveLower(d, ae_low, bg_low), d, out);
      hn::StoreU(hn::InterleaveUpper(d, ae_low, bg_low), d, out + to_stride);
      hn::StoreU(hn::InterleaveLower(d, ae_high, bg_high), d, out + 2 * to_stride);
      hn::StoreU(hn::InterleaveUpper(d, ae_high, bg_high), d, out + 3 * to_stride);
    }
  }
}

// Largest number of rows that divides `of` and whose accumulators fit into registers.
constexpr size_t row_tile(size_t of, size_t vectors) {
  size_t rows = kAccumulators / vectors;
  while (of % rows != 0) --rows;
  return rows;
}

// acc[r][n] += sum over i < count of a[r * kRow + i * kStep] * b[i * kB + n * lanes]; b is aligned.
template <size_t kRow, size_t kStep, size_t kB, size_t kR, size_t kN>
HWY_INLINE void multiply(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, size_t count,
                         V (&acc)[kR][kN]) {
  const F f;
  for (size_t i = 0; i < count; ++i, a += kStep, b += kB) {
    V right[kN];
    NMRF_UNROLL for (size_t n = 0; n < kN; ++n) right[n] = hn::Load(f, b + n * kLanes);
    NMRF_UNROLL for (size_t r = 0; r < kR; ++r) {
      const V left = hn::Set(f, a[r * kRow]);
      NMRF_UNROLL for (size_t n = 0; n < kN; ++n) acc[r][n] = hn::MulAdd(left, right[n], acc[r][n]);
    }
  }
}

// Rows of keys a score tile covers; panels of scores and rows of keys are padded to a multiple.
template <size_t kVecs>
constexpr size_t score_rows() {
  return kLanes == 16 ? (kVecs == 1 ? 16 : 8) : 4;
}

// Products of all keys with a panel of queries: sum over d < depth of keys[u][d] * queries[d][v].
// keys: [rows][kD], queries: [depth][kVecs * lanes]. `start(n)` gives the vector the sums begin
// with; finish(u, sums) takes those of key u, for every u below `rows` rounded up to score_rows.
template <size_t kVecs, size_t kD, class Start, class Finish>
HWY_INLINE void score_panel(const float* keys, size_t rows, const float* queries, size_t depth,
                            const Start& start, const Finish& finish) {
  constexpr size_t kR = score_rows<kVecs>();
  for (size_t u = 0; u < rows; u += kR) {
    V acc[kR][kVecs];
    NMRF_UNROLL for (size_t n = 0; n < kVecs; ++n) {
      const V first = start(n);
      NMRF_UNROLL for (size_t r = 0; r < kR; ++r) acc[r][n] = first;
    }
    multiply<kD, 1, kVecs * kLanes>(keys + u * kD, queries, depth, acc);
    NMRF_UNROLL for (size_t r = 0; r < kR; ++r) finish(u + r, acc[r]);
  }
}

struct StartAtZero {
  HWY_INLINE V operator()(size_t) const { return hn::Zero(F()); }
};

// Starts at minus the given row of one panel width.
struct StartBelow {
  const float* row;
  HWY_INLINE V operator()(size_t n) const { return hn::Neg(hn::Load(F(), row + n * kLanes)); }
};

struct StoreScores {
  float* panel;
  template <size_t kVecs>
  HWY_INLINE void operator()(size_t u, V (&sums)[kVecs]) const {
    NMRF_UNROLL for (size_t n = 0; n < kVecs; ++n)
        hn::Store(sums[n], F(), panel + (u * kVecs + n) * kLanes);
  }
};

// Product with the weight of the same place: panel = weights * sums.
struct StoreWeighted {
  const float* weights;
  float* panel;
  template <size_t kVecs>
  HWY_INLINE void operator()(size_t u, V (&sums)[kVecs]) const {
    NMRF_UNROLL for (size_t n = 0; n < kVecs; ++n) {
      const size_t at = (u * kVecs + n) * kLanes;
      hn::Store(hn::Mul(sums[n], hn::Load(F(), weights + at)), F(), panel + at);
    }
  }
};

template <size_t kR, size_t kN>
HWY_INLINE void load_tile(const float* from, size_t stride, bool add, V (&acc)[kR][kN]) {
  NMRF_UNROLL for (size_t r = 0; r < kR; ++r) {
    NMRF_UNROLL for (size_t n = 0; n < kN; ++n) acc[r][n] =
        add ? hn::Load(F(), from + r * stride + n * kLanes) : hn::Zero(F());
  }
}

template <size_t kR, size_t kN>
HWY_INLINE void store_tile(V (&acc)[kR][kN], float* to, size_t stride) {
  NMRF_UNROLL for (size_t r = 0; r < kR; ++r) {
    NMRF_UNROLL for (size_t n = 0; n < kN; ++n)
        hn::Store(acc[r][n], F(), to + r * stride + n * kLanes);
  }
}

// Vectors of a row a tile covers at a time.
template <size_t kD>
constexpr size_t row_vectors() {
  return kD / kLanes >= 2 ? 2 : 1;
}

// out[v] (+)= sum over the keys u of panel[u][v] * values[u], for all kQ queries of the panel.
// values: [keys][kD], out: [kQ][kD].
template <size_t kQ, size_t kD>
HWY_NOINLINE void gather_from_keys(const float* panel, size_t keys, const float* values, bool add,
                                   float* out) {
  constexpr size_t kN = row_vectors<kD>(), kR = row_tile(kQ, kN);
  for (size_t c = 0; c < kD; c += kN * kLanes) {
    for (size_t v = 0; v < kQ; v += kR) {
      V acc[kR][kN];
      load_tile(out + v * kD + c, kD, add, acc);
      multiply<1, kQ, kD>(panel + v, values + c, keys, acc);
      store_tile(acc, out + v * kD + c, kD);
    }
  }
}

// out[u] (+)= sum over the queries v < queries of panel[u][v] * values[v], for all keys u; panel
// and out are padded to a multiple of key_tile rows. values: [kQ][kD].
template <size_t kQ, size_t kD>
constexpr size_t key_tile() {
  return row_tile(kQ, row_vectors<kD>());
}
template <size_t kQ, size_t kD>
HWY_NOINLINE void gather_from_queries(const float* panel, size_t keys, const float* values,
                                      size_t queries, bool add, float* out) {
  constexpr size_t kN = row_vectors<kD>(), kR = key_tile<kQ, kD>();
  for (size_t c = 0; c < kD; c += kN * kLanes) {
    for (size_t u = 0; u < keys; u += kR) {
      V acc[kR][kN];
      load_tile(out + u * kD + c, kD, add, acc);
      multiply<kQ, 1, kD>(panel + u * kQ, values + c, queries, acc);
      store_tile(acc, out + u * kD + c, kD);
    }
  }
}

}  // namespace nmrf::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
