#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/attention.h"
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/label_attention.cpp"
#include <hwy/foreach_target.h>

#include "kernels/attention_blocks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nmrf::kernels::HWY_NAMESPACE {

// Pairs of labels [i][j] with rows padded to a multiple of four.
constexpr size_t kMaxPairs = kMaxLabels * kMaxLabels;
constexpr size_t padded(size_t labels) { return round_up(labels, 4); }

using F4 = hn::FixedTag<float, 4>;
using V4 = hn::Vec<F4>;

// The labels of one pixel in a tensor: row l starts at data + l * step.
struct Rows {
  const float* data;
  int64_t step;
  HWY_INLINE const float* operator[](size_t l) const { return data + l * step; }
};
struct MutableRows {
  float* data;
  int64_t step;
  HWY_INLINE float* operator[](size_t l) const { return data + l * step; }
};

// The sums of the lanes of four vectors.
template <class D>
HWY_INLINE V4 sums_of_lanes(D d, hn::Vec<D> a, hn::Vec<D> b, hn::Vec<D> c, hn::Vec<D> e) {
  const hn::Repartition<double, D> wide;
  const auto ab =
      hn::BitCast(wide, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
  const auto ce =
      hn::BitCast(wide, hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e)));
  const auto blocks = hn::Add(hn::BitCast(d, hn::InterleaveLower(wide, ab, ce)),
                              hn::BitCast(d, hn::InterleaveUpper(wide, ab, ce)));
  if constexpr (hn::MaxLanes(D()) == 16) {
    const hn::Half<D> half;
    const auto two = hn::Add(hn::LowerHalf(half, blocks), hn::UpperHalf(half, blocks));
    return hn::Add(hn::LowerHalf(F4(), two), hn::UpperHalf(F4(), two));
  } else if constexpr (hn::MaxLanes(D()) == 8) {
    return hn::Add(hn::LowerHalf(F4(), blocks), hn::UpperHalf(F4(), blocks));
  } else {
    return blocks;
  }
}

// a_i . b_j for the four labels j from `first` on (the last one again beyond it).
HWY_INLINE V4 four_dots(const float* a, const Rows& b, size_t first, size_t labels, size_t depth) {
  const F f;
  const float* row[4];
  for (size_t j = 0; j < 4; ++j) row[j] = b[std::min(first + j, labels - 1)];
  V sum[4] = {hn::Zero(f), hn::Zero(f), hn::Zero(f), hn::Zero(f)};
  size_t c = 0;
  for (; c + kLanes <= depth; c += kLanes) {
    const V left = hn::LoadU(f, a + c);
    NMRF_UNROLL for (size_t j = 0; j < 4; ++j) sum[j] =
        hn::MulAdd(left, hn::LoadU(f, row[j] + c), sum[j]);
  }
  V4 dots = sums_of_lanes(f, sum[0], sum[1], sum[2], sum[3]);
  if (c < depth) {
    HWY_ALIGN float rest[4] = {};
    for (; c < depth; ++c)
      for (size_t j = 0; j < 4; ++j) rest[j] += a[c] * row[j][c];
    dots = hn::Add(dots, hn::Load(F4(), rest));
  }
  return dots;
}

// weights[i][j] = softmax over j of scale * q_i . k_j, zero in the padding.
HWY_INLINE void attend(const Rows& q, const Rows& k, size_t labels, size_t depth, float scale,
                       float* weights) {
  const F4 d;
  const size_t stride = padded(labels);
  const V4 factor = hn::Set(d, scale * kLog2E);
  for (size_t i = 0; i < labels; ++i) {
    float* row = weights + i * stride;
    V4 top = hn::Set(d, -std::numeric_limits<float>::infinity());
    for (size_t j = 0; j < labels; j += 4) {
      V4 logit = hn::Mul(four_dots(q[i], k, j, labels, depth), factor);
      logit = hn::IfThenElse(hn::FirstN(d, std::min<size_t>(labels - j, 4)), logit,
                             hn::Set(d, -std::numeric_limits<float>::infinity()));
      top = hn::Max(top, logit);
      hn::Store(logit, d, row + j);
    }
    top = hn::MaxOfLanes(d, top);
    V4 total = hn::Zero(d);
    for (size_t j = 0; j < labels; j += 4) {
      const V4 weight = exp2(d, hn::Sub(hn::Load(d, row + j), top));
      total = hn::Add(total, weight);
      hn::Store(weight, d, row + j);
    }
    const V4 inverse = hn::Div(hn::Set(d, 1.0f), hn::SumOfLanes(d, total));
    for (size_t j = 0; j < labels; j += 4)
      hn::Store(hn::Mul(hn::Load(d, row + j), inverse), d, row + j);
  }
}

// slopes[i][j]: gradient of the logits, from that of the messages.
HWY_INLINE void attend_backward(const Rows& grad, const Rows& v, const float* weights,
                                size_t labels, size_t depth, float* slopes) {
  const F4 d;
  const size_t stride = padded(labels);
  for (size_t i = 0; i < labels; ++i) {
    V4 mean = hn::Zero(d);
    for (size_t j = 0; j < labels; j += 4) {
      const V4 dots = four_dots(grad[i], v, j, labels, depth);
      mean = hn::MulAdd(dots, hn::Load(d, weights + i * stride + j), mean);
      hn::Store(dots, d, slopes + i * stride + j);
    }
    mean = hn::SumOfLanes(d, mean);
    for (size_t j = 0; j < labels; j += 4) {
      float* at = slopes + i * stride + j;
      hn::Store(hn::Mul(hn::Load(d, weights + i * stride + j), hn::Sub(hn::Load(d, at), mean)), d,
                at);
    }
  }
}

// out_i = scale * sum over j of pairs[i * row + j * column] * values_j
HWY_INLINE void combine(const float* pairs, size_t row, size_t column, const Rows& values,
                        size_t labels, size_t depth, float scale, const MutableRows& out) {
  const F f;
  const V factor = hn::Set(f, scale);
  for (size_t i = 0; i < labels; ++i) {
    size_t c = 0;
    for (; c + kLanes <= depth; c += kLanes) {
      V sum = hn::Zero(f);
      for (size_t j = 0; j < labels; ++j)
        sum = hn::MulAdd(hn::Set(f, pairs[i * row + j * column]), hn::LoadU(f, values[j] + c), sum);
      hn::StoreU(hn::Mul(sum, factor), f, out[i] + c);
    }
    for (; c < depth; ++c) {
      float sum = 0;
      for (size_t j = 0; j < labels; ++j) sum += pairs[i * row + j * column] * values[j][c];
      out[i][c] = scale * sum;
    }
  }
}

// Start of pixel `index`, counted over batch, row, column.
template <class Grid>
HWY_INLINE auto pixel_at(const Grid& grid, const LabelShape& s, int64_t index) {
  return grid.data + index / s.width / s.height * grid.batch +
         index / s.width % s.height * grid.row + index % s.width * grid.column;
}

void LabelForwardRange(const LabelForward& job, int64_t begin, int64_t end) {
  const LabelShape& s = job.shape;
  const size_t labels = s.labels, depth = s.depth;
  const float scale = 1.0f / std::sqrt(static_cast<float>(depth));
  const size_t stride = padded(labels);
  HWY_ALIGN float weights[kMaxPairs];
  for (int64_t pixel = begin; pixel < end; ++pixel) {
    Rows q{pixel_at(job.q, s, pixel), job.q.label}, k{pixel_at(job.k, s, pixel), job.k.label},
        v{pixel_at(job.v, s, pixel), job.v.label};
    MutableRows out{pixel_at(job.out, s, pixel), job.out.label};
    for (int64_t head = 0; head < s.heads; ++head) {
      attend(q, k, labels, depth, scale, weights);
      combine(weights, stride, 1, v, labels, depth, 1.0f, out);
      q.data += depth, k.data += depth, v.data += depth, out.data += depth;
    }
  }
}

void LabelBackwardRange(const LabelBackward& job, int64_t begin, int64_t end) {
  const LabelShape& s = job.shape;
  const size_t labels = s.labels, depth = s.depth;
  const float scale = 1.0f / std::sqrt(static_cast<float>(depth));
  const size_t stride = padded(labels);
  HWY_ALIGN float weights[kMaxPairs];
  HWY_ALIGN float slopes[kMaxPairs];
  for (int64_t pixel = begin; pixel < end; ++pixel) {
    Rows q{pixel_at(job.q, s, pixel), job.q.label}, k{pixel_at(job.k, s, pixel), job.k.label},
        v{pixel_at(job.v, s, pixel), job.v.label},
        grad{pixel_at(job.grad_out, s, pixel), job.grad_out.label};
    MutableRows grad_q{pixel_at(job.grad_q, s, pixel), job.grad_q.label},
        grad_k{pixel_at(job.grad_k, s, pixel), job.grad_k.label},
        grad_v{pixel_at(job.grad_v, s, pixel), job.grad_v.label};
    for (int64_t head = 0; head < s.heads; ++head) {
      attend(q, k, labels, depth, scale, weights);
      attend_backward(grad, v, weights, labels, depth, slopes);
      combine(slopes, stride, 1, k, labels, depth, scale, grad_q);
      combine(slopes, 1, stride, q, labels, depth, scale, grad_k);
      combine(weights, 1, stride, grad, labels, depth, 1.0f, grad_v);
      q.data += depth, k.data += depth, v.data += depth, grad.data += depth;
      grad_q.data += depth, grad_k.data += depth, grad_v.data += depth;
    }
  }
}

}  // namespace nmrf::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nmrf::kernels {

HWY_EXPORT(LabelForwardRange);
HWY_EXPORT(LabelBackwardRange);

void label_forward(const LabelForward& job, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(LabelForwardRange)(job, begin, end);
}
void label_backward(const LabelBackward& job, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(LabelBackwardRange)(job, begin, end);
}

}  // namespace nmrf::kernels
#endif
