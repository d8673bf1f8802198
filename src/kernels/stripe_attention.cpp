#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/attention.h"
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/stripe_attention.cpp"
#include <hwy/foreach_target.h>

#include "kernels/attention_blocks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nmrf::kernels::HWY_NAMESPACE {

// Offsets of the tokens of a stripe in each of its grids, kept by each thread from call to call.
using StripeOffsets = std::array<std::vector<int64_t>, 8>;
inline StripeOffsets& stripe_offsets() {
  thread_local StripeOffsets offsets;
  return offsets;
}

// A stripe of one head is streamed: panels of kQ queries against blocks of keys, with the softmax
// corrected as larger logits turn up.
template <size_t kD>
class StripeKernel {
  static constexpr size_t kVecs = 3, kQ = kVecs * kLanes;
  static constexpr size_t kKeysAtOnce = 96;

 public:
  // With a null scratch only the size is found.
  StripeKernel(const StripeShape& shape, bool backward, float* scratch)
      : s_(shape),
        tokens_(shape.tokens()),
        padded_(round_up(tokens_, 48) + 48),
        // All labels of a pixel in one block: then no block is masked out completely.
        block_(std::max<size_t>(1, kKeysAtOnce / shape.labels) * shape.labels),
        scale_(1.0f / std::sqrt(static_cast<float>(shape.depth))),
        offsets_(stripe_offsets()) {
    Arena arena{scratch};
    k_ = arena.take(padded_ * kD);
    v_ = arena.take(padded_ * kD);
    sums_ = arena.take((s_.pixels + 2) * kD);
    q_ = arena.take(kQ * kD);
    query_panel_ = arena.take(kQ * kD);
    out_ = arena.take(kQ * kD);
    weights_ = arena.take(round_up(block_, 48) * kQ);
    row_ = arena.take(kQ);
    taps_ = arena.take(3 * kD);
    if (backward) {
      grad_ = arena.take(padded_ * kD);
      grad_sums_ = arena.take((s_.pixels + 2) * kD);
      grad_panel_ = arena.take(kQ * kD);
      slopes_ = arena.take(round_up(block_, 48) * kQ);
      grad_k_ = arena.take(padded_ * kD);
      grad_v_ = arena.take(padded_ * kD);
      means_ = arena.take(kQ);
      tap_grads_ = arena.take(3 * kD);
    }
    size_ = arena.used;
    if (!scratch) return;
    for (auto& offsets : offsets_) offsets.resize(tokens_);
  }

  size_t size() const { return size_; }

  void forward(const StripeForward& job, int64_t begin, int64_t end) {
    find_offsets(job.q, 0);
    find_offsets(job.k, 1);
    find_offsets(job.v, 2);
    find_offsets(job.out, 3);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t head = item % s_.heads;
      ahead_.start(tokens_, s_.depth, work());
      if (item + 1 < end) {
        look_ahead(job.k, item + 1, 1);
        look_ahead(job.v, item + 1, 2);
        look_ahead(job.q, item + 1, 0);
        look_ahead(job.out, item + 1, 3);
      }

      load(job.k, item, 1.0f, k_);
      load(job.v, item, 1.0f, v_);
      load_taps(job.filter, head);
      sum_labels(v_, sums_);
      float* lse = job.lse ? job.lse + item * tokens_ : nullptr;
      for (size_t first = 0; first < tokens_; first += kQ) {
        const size_t count = std::min(kQ, tokens_ - first);
        load_some(job.q, item, scale_ * kLog2E, first, count, q_);
        transpose(q_, kD, kQ, kD, query_panel_, kQ);
        attend(first, count, lse ? lse + first : nullptr);
        for (size_t i = 0; i < count; ++i) enhance(first + i, out_ + i * kD, row_[i]);
        store_some(out_, 1.0f, job.out, item, first, count);
      }
    }
  }

  void backward(const StripeBackward& job, float* grad_filter, int64_t begin, int64_t end) {
    find_offsets(job.q, 0);
    find_offsets(job.k, 1);
    find_offsets(job.v, 2);
    find_offsets(job.out, 3);
    find_offsets(job.grad_out, 4);
    find_offsets(job.grad_q, 5);
    find_offsets(job.grad_k, 6);
    find_offsets(job.grad_v, 7);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t head = item % s_.heads;
      ahead_.start(tokens_, s_.depth, work());
      if (item + 1 < end) {
        look_ahead(job.k, item + 1, 1);
        look_ahead(job.v, item + 1, 2);
        look_ahead(job.grad_out, item + 1, 4);
        look_ahead(job.q, item + 1, 0);
        look_ahead(job.out, item + 1, 3);
        look_ahead(job.grad_q, item + 1, 5);
        look_ahead(job.grad_k, item + 1, 6);
        look_ahead(job.grad_v, item + 1, 7);
      }

      load(job.k, item, 1.0f, k_);
      load(job.v, item, 1.0f, v_);
      load(job.grad_out, item, 1.0f, grad_);
      load_taps(job.filter, head);
      sum_labels(v_, sums_);
      sum_labels(grad_, grad_sums_);
      enhance_backward();
      add_tap_grads(grad_filter, head);
      std::fill(grad_k_, grad_k_ + padded_ * kD, 0.0f);
      const float* lse = job.lse + item * tokens_;
      for (size_t first = 0; first < tokens_; first += kQ) {
        const size_t count = std::min(kQ, tokens_ - first);
        load_some(job.out, item, 1.0f, first, count, q_);
        mean_gradients(first, count);
        load_some(job.q, item, scale_ * kLog2E, first, count, q_);
        transpose(q_, kD, kQ, kD, query_panel_, kQ);
        transpose(grad_ + first * kD, kD, kQ, kD, grad_panel_, kQ);
        std::copy(lse + first, lse + first + count, row_);
        attend_backward(first, count);
        store_some(out_, scale_, job.grad_q, item, first, count);
      }
      store_some(grad_k_, kLn2, job.grad_k, item, 0, tokens_);  // queries carried log2(e)
      store_some(grad_v_, 1.0f, job.grad_v, item, 0, tokens_);
    }
  }

 private:
  template <class Grid>
  int64_t start(const Grid& grid, int64_t item) const {
    const int64_t head = item % s_.heads, stripe = item / s_.heads % s_.stripes,
                  image = item / s_.heads / s_.stripes;
    return image * grid.batch + stripe * grid.row + head * s_.depth;
  }

  // Offsets of the tokens of a stripe, and the rows of a later item to ask for.
  template <class Grid>
  void find_offsets(const Grid& grid, size_t list) {
    for (size_t t = 0; t < tokens_; ++t)
      offsets_[list][t] = t / s_.labels * grid.column + t % s_.labels * grid.label;
  }
  template <class Grid>
  void look_ahead(const Grid& grid, int64_t item, size_t list) {
    ahead_.add(grid.data + start(grid, item), offsets_[list].data());
  }
  size_t work() const {
    return (tokens_ + kQ - 1) / kQ * tokens_ * kVecs * (kScoreWork + kSoftmaxWork);
  }

  HWY_NOINLINE void load_some(const Tokens& grid, int64_t item, float scale, size_t first,
                              size_t count, float* to) {
    const float* base = grid.data + start(grid, item);
    size_t pixel = first / s_.labels, label = first % s_.labels;
    for (size_t i = 0; i < count; ++i) {
      copy_scaled(base + pixel * grid.column + label * grid.label, s_.depth, scale, to + i * kD);
      if (++label == static_cast<size_t>(s_.labels)) label = 0, ++pixel;
    }
  }
  void load(const Tokens& grid, int64_t item, float scale, float* to) {
    load_some(grid, item, scale, 0, tokens_, to);
  }
  HWY_NOINLINE void store_some(const float* from, float scale, const MutableTokens& grid,
                               int64_t item, size_t first, size_t count) {
    float* base = grid.data + start(grid, item);
    size_t pixel = first / s_.labels, label = first % s_.labels;
    for (size_t i = 0; i < count; ++i) {
      copy_scaled(from + i * kD, s_.depth, scale, base + pixel * grid.column + label * grid.label);
      if (++label == static_cast<size_t>(s_.labels)) label = 0, ++pixel;
    }
  }

  void load_taps(const float* filter, int64_t head) {
    for (size_t tap = 0; tap < 3; ++tap)
      std::copy_n(filter + tap * s_.heads * s_.depth + head * s_.depth, s_.depth, taps_ + tap * kD);
  }

  // sums[1 + pixel] = sum over the labels; the row before the first pixel and after the last stay
  // zero.
  void sum_labels(const float* tokens, float* sums) {
    const F f;
    for (int64_t pixel = 0; pixel < s_.pixels; ++pixel) {
      for (size_t c = 0; c < kD; c += kLanes) {
        V sum = hn::Zero(f);
        for (int64_t l = 0; l < s_.labels; ++l)
          sum = hn::Add(sum, hn::Load(f, tokens + (pixel * s_.labels + l) * kD + c));
        hn::Store(sum, f, sums + (pixel + 1) * kD + c);
      }
    }
  }

  // row = factor * row + the locally-enhanced term of a token.
  HWY_INLINE void enhance(size_t token, float* row, float factor) {
    const F f;
    const float* sum = sums_ + token / s_.labels * kD;
    const V scale = hn::Set(f, factor);
    for (size_t c = 0; c < kD; c += kLanes) {
      V term = hn::Mul(hn::Load(f, taps_ + c), hn::Load(f, sum + c));
      term = hn::MulAdd(hn::Load(f, taps_ + kD + c), hn::Load(f, v_ + token * kD + c), term);
      term = hn::MulAdd(hn::Load(f, taps_ + 2 * kD + c), hn::Load(f, sum + 2 * kD + c), term);
      hn::Store(hn::MulAdd(scale, hn::Load(f, row + c), term), f, row + c);
    }
  }

  // grad_v_ and tap_grads_ of the locally-enhanced term alone.
  HWY_NOINLINE void enhance_backward() {
    const F f;
    for (size_t c = 0; c < kD; c += kLanes) {
      const V before = hn::Load(f, taps_ + c), centre = hn::Load(f, taps_ + kD + c),
              after = hn::Load(f, taps_ + 2 * kD + c);
      V grad_before = hn::Zero(f), grad_centre = hn::Zero(f), grad_after = hn::Zero(f);
      for (int64_t pixel = 0; pixel < s_.pixels; ++pixel) {
        const float* sum = sums_ + pixel * kD + c;
        const float* grad = grad_sums_ + pixel * kD + c;
        const V here = hn::Load(f, grad + kD);
        grad_before = hn::MulAdd(here, hn::Load(f, sum), grad_before);
        grad_after = hn::MulAdd(here, hn::Load(f, sum + 2 * kD), grad_after);
        // The sum of this pixel is the neighbour before of the next one, and the other way round.
        const V shared =
            hn::MulAdd(before, hn::Load(f, grad + 2 * kD), hn::Mul(after, hn::Load(f, grad)));
        for (int64_t l = 0; l < s_.labels; ++l) {
          const size_t at = (pixel * s_.labels + l) * kD + c;
          const V own = hn::Load(f, grad_ + at);
          grad_centre = hn::MulAdd(own, hn::Load(f, v_ + at), grad_centre);
          hn::Store(hn::MulAdd(centre, own, shared), f, grad_v_ + at);
        }
      }
      hn::Store(grad_before, f, tap_grads_ + c);
      hn::Store(grad_centre, f, tap_grads_ + kD + c);
      hn::Store(grad_after, f, tap_grads_ + 2 * kD + c);
    }
  }

  void add_tap_grads(float* grad_filter, int64_t head) {
    for (size_t tap = 0; tap < 3; ++tap) {
      float* to = grad_filter + tap * s_.heads * s_.depth + head * s_.depth;
      for (int64_t d = 0; d < s_.depth; ++d) to[d] += tap_grads_[tap * kD + d];
    }
  }

  // Pairs of different labels of one pixel get `value` in a panel of scores.
  void mask(size_t first, size_t count, size_t begin, size_t end, float value) {
    const size_t labels = s_.labels;
    if (labels == 1) return;
    const size_t from = std::max(first, begin), to = std::min(first + count, end + labels);
    for (size_t v = from / labels * labels; v < to; ++v) {
      if (v < first || v >= first + count) continue;
      const size_t pixel = v / labels * labels;
      if (pixel < begin || pixel >= end) continue;
      for (size_t u = pixel; u < pixel + labels; ++u)
        if (u != v) weights_[(u - begin) * kQ + v - first] = value;
    }
  }

  // out_ = sums of the values, not yet divided; row_ = 1 / sum of the weights.
  HWY_NOINLINE void attend(size_t first, size_t count, float* lse) {
    const F f;
    V top[kVecs], total[kVecs];
    for (size_t n = 0; n < kVecs; ++n) {
      top[n] = hn::Set(f, -std::numeric_limits<float>::infinity());
      total[n] = hn::Zero(f);
    }
    for (size_t begin = 0; begin < tokens_; begin += block_) {
      const size_t keys = std::min(block_, tokens_ - begin);
      score_panel<kVecs, kD>(k_ + begin * kD, keys, query_panel_, s_.depth, StartAtZero(),
                             StoreScores{weights_});
      mask(first, count, begin, begin + keys, -std::numeric_limits<float>::infinity());
      softmax_block(keys, top, total, begin > 0);
      gather_from_keys<kQ, kD>(weights_, keys, v_ + begin * kD, begin > 0, out_);
    }
    for (size_t n = 0; n < kVecs; ++n)
      hn::Store(hn::Div(hn::Set(f, 1.0f), total[n]), f, row_ + n * kLanes);
    if (!lse) return;
    HWY_ALIGN float sums[kQ];
    for (size_t n = 0; n < kVecs; ++n)
      hn::Store(hn::Add(top[n], hn::Log2(f, total[n])), f, sums + n * kLanes);
    std::copy_n(sums, count, lse);
  }

  HWY_INLINE void softmax_block(size_t keys, V (&top)[kVecs], V (&total)[kVecs], bool again) {
    const F f;
    V now[kVecs];
    NMRF_UNROLL for (size_t n = 0; n < kVecs; ++n) now[n] = top[n];
    for (size_t u = 0; u < keys; ++u) {
      NMRF_UNROLL for (size_t n = 0; n < kVecs; ++n) now[n] =
          hn::Max(now[n], hn::Load(f, weights_ + u * kQ + n * kLanes));
    }
    bool same = true;
    NMRF_UNROLL for (size_t n = 0; n < kVecs; ++n) same &= hn::AllTrue(f, hn::Eq(now[n], top[n]));
    if (!same) {
      NMRF_UNROLL for (size_t n = 0; n < kVecs; ++n) {
        const V factor = exp2(hn::Sub(top[n], now[n]));
        total[n] = hn::Mul(total[n], factor);
        hn::Store(factor, f, row_ + n * kLanes);
        top[n] = now[n];
      }
      for (size_t v = 0; again && v < kQ; ++v) {
        const V factor = hn::Set(f, row_[v]);
        for (size_t c = 0; c < kD; c += kLanes)
          hn::Store(hn::Mul(factor, hn::Load(f, out_ + v * kD + c)), f, out_ + v * kD + c);
      }
    }
    for (size_t u = 0; u < keys; ++u) {
      NMRF_UNROLL for (size_t n = 0; n < kVecs; ++n) {
        float* at = weights_ + u * kQ + n * kLanes;
        const V weight = exp2(hn::Sub(hn::Load(f, at), top[n]));
        hn::Store(weight, f, at);
        total[n] = hn::Add(total[n], weight);
      }
      ahead_.step(kVecs * (kScoreWork + kSoftmaxWork));
    }
  }

  // means_[v] = gradient . attention part of the message, which the softmax subtracts. q_ holds the
  // messages, with the locally-enhanced term.
  HWY_NOINLINE void mean_gradients(size_t first, size_t count) {
    const F f;
    for (size_t i = 0; i < count; ++i) {
      const size_t token = first + i;
      const float* sum = sums_ + token / s_.labels * kD;
      V total = hn::Zero(f);
      for (size_t c = 0; c < kD; c += kLanes) {
        V part = hn::Load(f, q_ + i * kD + c);
        part = hn::NegMulAdd(hn::Load(f, taps_ + c), hn::Load(f, sum + c), part);
        part = hn::NegMulAdd(hn::Load(f, taps_ + kD + c), hn::Load(f, v_ + token * kD + c), part);
        part = hn::NegMulAdd(hn::Load(f, taps_ + 2 * kD + c), hn::Load(f, sum + 2 * kD + c), part);
        total = hn::MulAdd(part, hn::Load(f, grad_ + token * kD + c), total);
      }
      means_[i] = hn::GetLane(hn::SumOfLanes(f, total));
    }
  }

  // Adds to grad_k_ and grad_v_; out_ = gradient of the queries, without the scale.
  HWY_NOINLINE void attend_backward(size_t first, size_t count) {
    const F f;
    for (size_t begin = 0; begin < tokens_; begin += block_) {
      const size_t keys = std::min(block_, tokens_ - begin);
      score_panel<kVecs, kD>(k_ + begin * kD, keys, query_panel_, s_.depth, StartBelow{row_},
                             StoreScores{weights_});
      mask(first, count, begin, begin + keys, -std::numeric_limits<float>::infinity());
      for (size_t u = 0; u < keys; ++u) {
        NMRF_UNROLL for (size_t n = 0; n < kVecs; ++n) {
          float* at = weights_ + u * kQ + n * kLanes;
          hn::Store(exp2(hn::Load(f, at)), f, at);
        }
        ahead_.step(kVecs * (kScoreWork + kSoftmaxWork));
      }
      score_panel<kVecs, kD>(v_ + begin * kD, keys, grad_panel_, s_.depth, StartBelow{means_},
                             StoreWeighted{weights_, slopes_});
      // Tiles run past the last key of the block: there they must add nothing.
      const size_t end = round_up(keys, key_tile<kQ, kD>()) * kQ;
      std::fill(weights_ + keys * kQ, weights_ + end, 0.0f);
      std::fill(slopes_ + keys * kQ, slopes_ + end, 0.0f);
      gather_from_queries<kQ, kD>(weights_, keys, grad_ + first * kD, count, true,
                                  grad_v_ + begin * kD);
      gather_from_queries<kQ, kD>(slopes_, keys, q_, count, true, grad_k_ + begin * kD);
      gather_from_keys<kQ, kD>(slopes_, keys, k_ + begin * kD, begin > 0, out_);
    }
  }

  StripeShape s_;
  size_t tokens_, padded_, block_;
  float scale_;
  size_t size_ = 0;
  float *k_, *v_;                   // [tokens][kD]
  float *q_, *query_panel_, *out_;  // of one panel; q_ times scale * log2(e)
  float* sums_;                     // [1 + pixels + 1][kD]
  float *weights_, *row_, *taps_;   // [block][kQ], [kQ], [3][kD]
  float *grad_ = nullptr, *grad_sums_ = nullptr, *grad_panel_ = nullptr;
  float *slopes_ = nullptr, *grad_k_ = nullptr, *grad_v_ = nullptr;
  float *means_ = nullptr, *tap_grads_ = nullptr;
  StripeOffsets& offsets_;
  Ahead ahead_;
};

size_t StripeScratch(const StripeShape& shape, bool backward) {
  if (shape.depth <= 16) return StripeKernel<16>(shape, backward, nullptr).size();
  return StripeKernel<32>(shape, backward, nullptr).size();
}

void StripeForwardRange(const StripeForward& job, int64_t begin, int64_t end, float* scratch) {
  if (job.shape.depth <= 16)
    StripeKernel<16>(job.shape, false, scratch).forward(job, begin, end);
  else
    StripeKernel<32>(job.shape, false, scratch).forward(job, begin, end);
}

void StripeBackwardRange(const StripeBackward& job, float* grad_filter, int64_t begin, int64_t end,
                         float* scratch) {
  if (job.shape.depth <= 16)
    StripeKernel<16>(job.shape, true, scratch).backward(job, grad_filter, begin, end);
  else
    StripeKernel<32>(job.shape, true, scratch).backward(job, grad_filter, begin, end);
}

}  // namespace nmrf::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nmrf::kernels {

HWY_EXPORT(StripeScratch);
HWY_EXPORT(StripeForwardRange);
HWY_EXPORT(StripeBackwardRange);

size_t stripe_forward_scratch(const StripeShape& shape) {
  return HWY_DYNAMIC_DISPATCH(StripeScratch)(shape, false);
}
size_t stripe_backward_scratch(const StripeShape& shape) {
  return HWY_DYNAMIC_DISPATCH(StripeScratch)(shape, true);
}
void stripe_forward(const StripeForward& job, int64_t begin, int64_t end, float* scratch) {
  HWY_DYNAMIC_DISPATCH(StripeForwardRange)(job, begin, end, scratch);
}
void stripe_backward(const StripeBackward& job, float* grad_filter, int64_t begin, int64_t end,
                     float* scratch) {
  HWY_DYNAMIC_DISPATCH(StripeBackwardRange)(job, grad_filter, begin, end, scratch);
}

}  // namespace nmrf::kernels
#endif
