#include "kernels/deformable.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/deformable.cpp"
#include <hwy/foreach_target.h>

// After foreach_target.h, which includes this file once for each instruction set.
#include <algorithm>
#include <cstring>

#include "kernels/attention_blocks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nmrf::kernels::HWY_NAMESPACE {

constexpr size_t kMost = Deformable::kMostSamples;

// The four taps of every sample of one query: pixels of the level and their weights.
struct Samples {
  HWY_ALIGN int32_t pixel[4][kMost];
  HWY_ALIGN float weight[4][kMost];
};

// exp of the logits of a query minus the largest of their head, over the sum of them.
HWY_INLINE void soften(const Deformable& op, const float* logits, float* weights) {
  const F f;
  const size_t points = op.points, all = op.samples();
  for (size_t first = 0; first < all; first += points) {
    const float top = *std::max_element(logits + first, logits + first + points);
    for (size_t p = first; p < first + points; ++p) weights[p] = (logits[p] - top) * kLog2E;
  }
  for (size_t i = 0; i < all; i += kLanes)
    hn::Store(exp2(hn::Load(f, weights + i)), f, weights + i);
  for (size_t first = 0; first < all; first += points) {
    float sum = 0;
    for (size_t p = first; p < first + points; ++p) sum += weights[p];
    for (size_t p = first; p < first + points; ++p) weights[p] /= sum;
  }
}

// The two taps of positions along one axis: where they lie and what they weigh, 0 outside.
struct Axis {
  hn::Vec<hn::RebindToSigned<F>> low, high;
  V low_weight, high_weight;

  // A place in the middle of the query, in image lengths, plus an offset in pixels. Normalised
  // first, as the published operator does.
  HWY_INLINE Axis(float middle, V offset, int64_t count) {
    const F f;
    const hn::RebindToSigned<F> i;
    const V size = hn::Set(f, static_cast<float>(count)), one = hn::Set(f, 1.0f);
    const V place = hn::Add(hn::Set(f, middle), hn::Div(offset, size));
    V at = hn::Sub(hn::Mul(place, size), hn::Set(f, 0.5f));
    // Far outside, and NaN: at -1, where both taps weigh nothing.
    at = hn::IfThenElse(hn::And(hn::Ge(at, hn::Neg(one)), hn::Lt(at, size)), at, hn::Neg(one));
    const V floor = hn::Floor(at), beyond = hn::Sub(at, floor);
    low_weight = hn::IfThenElseZero(hn::Ge(floor, hn::Zero(f)), hn::Sub(one, beyond));
    high_weight = hn::IfThenElseZero(hn::Lt(hn::Add(floor, one), size), beyond);
    const auto first = hn::ConvertTo(i, floor);
    low = hn::Max(first, hn::Zero(i));
    high = hn::Min(hn::Add(first, hn::Set(i, 1)), hn::Set(i, static_cast<int32_t>(count - 1)));
  }
};

HWY_INLINE void find_samples(const Deformable& op, int64_t row, int64_t column,
                             const float* offsets, const float* logits, Samples& to) {
  const F f;
  const hn::RebindToSigned<F> i;
  const size_t all = op.samples();
  HWY_ALIGN float place[2 * kMost], weights[kMost];
  std::memcpy(place, offsets, 2 * all * sizeof(float));
  // Lanes behind the last sample are computed and not used.
  const size_t padded = round_up(all, kLanes);
  std::fill(place + 2 * all, place + 2 * padded, 0.0f);
  std::fill(weights + all, weights + padded, 0.0f);
  soften(op, logits, weights);
  const float x = (static_cast<float>(column) + 0.5f) / static_cast<float>(op.query_width);
  const float y = (static_cast<float>(row) + 0.5f) / static_cast<float>(op.query_height);
  const auto stride = hn::Set(i, static_cast<int32_t>(op.width));
  for (size_t s = 0; s < all; s += kLanes) {
    V dx, dy;
    hn::LoadInterleaved2(f, place + 2 * s, dx, dy);
    const Axis across(x, dx, op.width), down(y, dy, op.height);
    const V weight = hn::Load(f, weights + s);
    const V upper = hn::Mul(weight, down.low_weight), lower = hn::Mul(weight, down.high_weight);
    const auto upper_row = hn::Mul(down.low, stride), lower_row = hn::Mul(down.high, stride);
    hn::Store(hn::Add(upper_row, across.low), i, to.pixel[0] + s);
    hn::Store(hn::Add(upper_row, across.high), i, to.pixel[1] + s);
    hn::Store(hn::Add(lower_row, across.low), i, to.pixel[2] + s);
    hn::Store(hn::Add(lower_row, across.high), i, to.pixel[3] + s);
    hn::Store(hn::Mul(upper, across.low_weight), f, to.weight[0] + s);
    hn::Store(hn::Mul(upper, across.high_weight), f, to.weight[1] + s);
    hn::Store(hn::Mul(lower, across.low_weight), f, to.weight[2] + s);
    hn::Store(hn::Mul(lower, across.high_weight), f, to.weight[3] + s);
  }
}

// out = the sum of the taps of one head, `count` channels from `value` on.
template <class D>
HWY_INLINE void sum_taps(D d, const Deformable& op, const Samples& samples, size_t head,
                         const float* value, float* out) {
  const size_t stride = op.channels(), first = head * op.points;
  auto sum = hn::Zero(d);
  for (size_t s = first; s < first + op.points; ++s)
    for (size_t tap = 0; tap < 4; ++tap)
      sum = hn::MulAdd(hn::Set(d, samples.weight[tap][s]),
                       hn::LoadU(d, value + samples.pixel[tap][s] * stride), sum);
  hn::StoreU(sum, d, out);
}

void sample_rows(const Deformable& op, const float* value, const float* offsets,
                 const float* weights, float* out, int64_t begin, int64_t end) {
  const hn::CappedTag<float, 8> d;
  const hn::CappedTag<float, 1> single;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  Samples samples;
  for (int64_t row = begin; row < end; ++row)
    for (int64_t column = 0; column < op.query_width; ++column) {
      const int64_t query = row * op.query_width + column;
      find_samples(op, row, column, offsets + query * 2 * op.samples(),
                   weights + query * op.samples(), samples);
      for (int64_t head = 0; head < op.heads; ++head) {
        int64_t c = head * op.depth;
        const int64_t last = c + op.depth;
        float* to = out + query * op.channels();
        for (; c + lanes <= last; c += lanes) sum_taps(d, op, samples, head, value + c, to + c);
        for (; c < last; ++c) sum_taps(single, op, samples, head, value + c, to + c);
      }
    }
}

}  // namespace nmrf::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nmrf::kernels {

HWY_EXPORT(sample_rows);

void deformable_forward(const Deformable& op, const float* value, const float* offsets,
                        const float* weights, float* out, std::int64_t begin, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(sample_rows)(op, value, offsets, weights, out, begin, end);
}

}  // namespace nmrf::kernels
#endif
