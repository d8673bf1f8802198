#include <algorithm>
#include <cmath>

#include "ops/kernels/attention.h"
#include "ops/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kernels/label_attention.cpp"
#include <hwy/foreach_target.h>

#include "ops/kernels/attention_blocks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nmrf::ops::kernels::HWY_NAMESPACE {

constexpr size_t kMaxPairs = kMaxLabels * kMaxLabels;

HWY_INLINE float dot(const float* a, const float* b, size_t count) {
  const F f;
  V sum = hn::Zero(f);
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    sum = hn::MulAdd(hn::LoadU(f, a + i), hn::LoadU(f, b + i), sum);
  float total = hn::GetLane(hn::SumOfLanes(f, sum));
  for (; i < count; ++i) total += a[i] * b[i];
  return total;
}

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

// pairs[i][j] = a_i . b_j
HWY_INLINE void dots(const Rows& a, const Rows& b, size_t labels, size_t depth, float* pairs) {
  for (size_t i = 0; i < labels; ++i)
    for (size_t j = 0; j < labels; ++j) pairs[i * labels + j] = dot(a[i], b[j], depth);
}

// out_i = scale * sum over j of pairs[i * row + j * column] * values_j
HWY_INLINE void combine(const float* pairs, size_t row, size_t column, const Rows& values,
                        size_t labels, size_t depth, float scale, const MutableRows& out) {
  const F f;
  for (size_t i = 0; i < labels; ++i) {
    size_t c = 0;
    for (; c + kLanes <= depth; c += kLanes) {
      V sum = hn::Zero(f);
      for (size_t j = 0; j < labels; ++j)
        sum = hn::MulAdd(hn::Set(f, pairs[i * row + j * column]), hn::LoadU(f, values[j] + c), sum);
      hn::StoreU(hn::Mul(sum, hn::Set(f, scale)), f, out[i] + c);
    }
    for (; c < depth; ++c) {
      float sum = 0;
      for (size_t j = 0; j < labels; ++j) sum += pairs[i * row + j * column] * values[j][c];
      out[i][c] = scale * sum;
    }
  }
}

// Softmax of each row of pairs, times `scale` before.
HWY_INLINE void softmax_rows(float* pairs, size_t labels, float scale) {
  const F f;
  for (size_t i = 0; i < labels; ++i) {
    float* row = pairs + i * labels;
    const float top = *std::max_element(row, row + labels);
    for (size_t j = 0; j < labels; ++j) row[j] = (row[j] - top) * scale * kLog2E;
  }
  for (size_t at = 0; at < labels * labels; at += kLanes)
    hn::Store(exp2(hn::Load(f, pairs + at)), f, pairs + at);
  for (size_t i = 0; i < labels; ++i) {
    float* row = pairs + i * labels;
    float sum = 0;
    for (size_t j = 0; j < labels; ++j) sum += row[j];
    const float inverse = 1.0f / sum;
    for (size_t j = 0; j < labels; ++j) row[j] *= inverse;
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
  HWY_ALIGN float pairs[kMaxPairs] = {};
  for (int64_t pixel = begin; pixel < end; ++pixel) {
    Rows q{pixel_at(job.q, s, pixel), job.q.label}, k{pixel_at(job.k, s, pixel), job.k.label},
        v{pixel_at(job.v, s, pixel), job.v.label};
    MutableRows out{pixel_at(job.out, s, pixel), job.out.label};
    for (int64_t head = 0; head < s.heads; ++head) {
      dots(q, k, labels, depth, pairs);
      softmax_rows(pairs, labels, scale);
      combine(pairs, labels, 1, v, labels, depth, 1.0f, out);
      q.data += depth, k.data += depth, v.data += depth, out.data += depth;
    }
  }
}

void LabelBackwardRange(const LabelBackward& job, int64_t begin, int64_t end) {
  const LabelShape& s = job.shape;
  const size_t labels = s.labels, depth = s.depth;
  const float scale = 1.0f / std::sqrt(static_cast<float>(depth));
  HWY_ALIGN float weights[kMaxPairs] = {};
  HWY_ALIGN float slopes[kMaxPairs] = {};
  for (int64_t pixel = begin; pixel < end; ++pixel) {
    Rows q{pixel_at(job.q, s, pixel), job.q.label}, k{pixel_at(job.k, s, pixel), job.k.label},
        v{pixel_at(job.v, s, pixel), job.v.label},
        grad{pixel_at(job.grad_out, s, pixel), job.grad_out.label};
    MutableRows grad_q{pixel_at(job.grad_q, s, pixel), job.grad_q.label},
        grad_k{pixel_at(job.grad_k, s, pixel), job.grad_k.label},
        grad_v{pixel_at(job.grad_v, s, pixel), job.grad_v.label};
    for (int64_t head = 0; head < s.heads; ++head) {
      dots(q, k, labels, depth, weights);
      softmax_rows(weights, labels, scale);
      dots(grad, v, labels, depth, slopes);
      for (size_t i = 0; i < labels; ++i) {
        float mean = 0;
        for (size_t j = 0; j < labels; ++j)
          mean += weights[i * labels + j] * slopes[i * labels + j];
        for (size_t j = 0; j < labels; ++j)
          slopes[i * labels + j] = weights[i * labels + j] * (slopes[i * labels + j] - mean);
      }
      combine(slopes, labels, 1, k, labels, depth, scale, grad_q);
      combine(slopes, 1, labels, q, labels, depth, scale, grad_k);
      combine(weights, 1, labels, grad, labels, depth, 1.0f, grad_v);
      q.data += depth, k.data += depth, v.data += depth, grad.data += depth;
      grad_q.data += depth, grad_k.data += depth, grad_v.data += depth;
    }
  }
}

}  // namespace nmrf::ops::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nmrf::ops::kernels {

HWY_EXPORT(LabelForwardRange);
HWY_EXPORT(LabelBackwardRange);

void label_forward(const LabelForward& job, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(LabelForwardRange)(job, begin, end);
}
void label_backward(const LabelBackward& job, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(LabelBackwardRange)(job, begin, end);
}

}  // namespace nmrf::ops::kernels
#endif
