#include "kernels/patches.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/patches.cpp"
#include <hwy/foreach_target.h>

// After foreach_target.h, which includes this file once for each instruction set.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace nmrf::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Four rows of four floats, `from_stride` apart, to four columns.
HWY_INLINE void transpose_4x4(const float* from, std::int64_t from_stride, float* to,
                              std::int64_t to_stride) {
  const hn::FixedTag<float, 4> d;
  const auto r0 = hn::LoadU(d, from), r1 = hn::LoadU(d, from + from_stride);
  const auto r2 = hn::LoadU(d, from + 2 * from_stride), r3 = hn::LoadU(d, from + 3 * from_stride);
  const auto even_low = hn::InterleaveLower(d, r0, r2), odd_low = hn::InterleaveLower(d, r1, r3);
  const auto even_high = hn::InterleaveUpper(d, r0, r2), odd_high = hn::InterleaveUpper(d, r1, r3);
  hn::StoreU(hn::InterleaveLower(d, even_low, odd_low), d, to);
  hn::StoreU(hn::InterleaveUpper(d, even_low, odd_low), d, to + to_stride);
  hn::StoreU(hn::InterleaveLower(d, even_high, odd_high), d, to + 2 * to_stride);
  hn::StoreU(hn::InterleaveUpper(d, even_high, odd_high), d, to + 3 * to_stride);
}

void transpose(const float* from, std::int64_t stride, std::int64_t channels, std::int64_t width,
               float* to) {
  // A few cache lines of each channel at a time: all channels of a block stay in the cache.
  constexpr std::int64_t kBlock = 16;
  for (std::int64_t x0 = 0; x0 < width; x0 += kBlock) {
    const std::int64_t end = std::min(x0 + kBlock, width);
    std::int64_t c = 0;
    for (; c + 4 <= channels; c += 4) {
      std::int64_t x = x0;
      for (; x + 4 <= end; x += 4)
        transpose_4x4(from + c * stride + x, stride, to + x * channels + c, channels);
      for (; x < end; ++x)
        for (std::int64_t i = 0; i < 4; ++i) to[x * channels + c + i] = from[(c + i) * stride + x];
    }
    for (; c < channels; ++c)
      for (std::int64_t x = x0; x < end; ++x) to[x * channels + c] = from[c * stride + x];
  }
}

void average(const float* from, std::int64_t width, std::int64_t channels, float* to,
             std::int64_t begin, std::int64_t end) {
  const std::int64_t half = width / 2;
  for (std::int64_t y = begin; y < end; ++y)
    for (std::int64_t x = 0; x < half; ++x) {
      const float* HWY_RESTRICT upper = from + (2 * y * width + 2 * x) * channels;
      const float* HWY_RESTRICT lower = upper + width * channels;
      float* HWY_RESTRICT mean = to + (y * half + x) * channels;
      for (std::int64_t c = 0; c < channels; ++c)
        mean[c] = 0.25f * (((upper[c] + upper[channels + c]) + lower[c]) + lower[channels + c]);
    }
}

// Sine and cosine of t by one evaluation in double, then by doubling the angle: fourteen doublings
// of an error of 1e-16 leave it far below the precision of a float.
#if HWY_HAVE_FLOAT64
void encode(const float* labels, float range, std::int64_t frequencies, float* out,
            std::int64_t begin, std::int64_t end) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> half;
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  HWY_ALIGN double angle[kLanes];
  HWY_ALIGN float sines[kMaxFrequencies * kLanes], cosines[kMaxFrequencies * kLanes];
  for (std::int64_t i = begin; i < end; i += kLanes) {
    const std::int64_t count = std::min(kLanes, end - i);
    bool small = true;
    for (std::int64_t j = 0; j < kLanes; ++j) {
      const float t = labels[i + std::min(j, count - 1)] * 3.14f / range;
      angle[j] = t;
      small = small && std::abs(t) < 10000.0f;  // within reach of the vector functions
    }
    auto t = hn::Load(d, angle);
    auto sine = t, cosine = t;
    if (small) {
      sine = hn::Sin(d, t);
      cosine = hn::Cos(d, t);
    } else {
      HWY_ALIGN double s[kLanes], c[kLanes];
      for (std::int64_t j = 0; j < kLanes; ++j)
        s[j] = std::sin(angle[j]), c[j] = std::cos(angle[j]);
      sine = hn::Load(d, s);
      cosine = hn::Load(d, c);
    }
    for (std::int64_t f = 0; f < frequencies; ++f) {
      hn::Store(hn::DemoteTo(half, sine), half, sines + f * kLanes);
      hn::Store(hn::DemoteTo(half, cosine), half, cosines + f * kLanes);
      const auto twice = hn::Add(sine, sine);
      sine = hn::Mul(twice, cosine);
      cosine = hn::Sub(hn::Mul(cosine, hn::Add(cosine, cosine)), hn::Set(d, 1.0));
    }
    for (std::int64_t j = 0; j < count; ++j) {
      float* to = out + (i + j) * (2 * frequencies + 1);
      for (std::int64_t f = 0; f < frequencies; ++f) {
        to[f] = sines[f * kLanes + j];
        to[frequencies + f] = cosines[f * kLanes + j];
      }
      to[2 * frequencies] = static_cast<float>(angle[j]);
    }
  }
}

#else  // Highway has no doubles for WebAssembly
void encode(const float* labels, float range, std::int64_t frequencies, float* out,
            std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) {
    float* to = out + i * (2 * frequencies + 1);
    const float t = labels[i] * 3.14f / range;
    double sine = std::sin(static_cast<double>(t)), cosine = std::cos(static_cast<double>(t));
    for (std::int64_t f = 0; f < frequencies; ++f) {
      to[f] = static_cast<float>(sine);
      to[frequencies + f] = static_cast<float>(cosine);
      const double twice = sine + sine;
      sine = twice * cosine;
      cosine = cosine * (cosine + cosine) - 1;
    }
    to[2 * frequencies] = t;
  }
}
#endif

void winners(const WinnersIn& in, const WinnersOut& out, std::int64_t begin, std::int64_t end) {
  const hn::CappedTag<float, 8> d;
  using V = hn::Vec<decltype(d)>;
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  const std::int64_t wide = 8 * in.width;
  const V one = hn::Set(d, 1.0f), zero = hn::Zero(d);
  HWY_ALIGN float label[kLanes];
  for (std::int64_t row = begin; row < end; ++row)
    for (std::int64_t x = 0; x < in.width; ++x) {
      const std::int64_t from = (row * in.width + x) * in.labels * 64;
      for (std::int64_t i = 0; i < 64; i += kLanes) {
        const float* score = in.score + from + i;
        const float* disparity = in.disparity + from + i;
        V best = hn::LoadU(d, score), chosen = hn::LoadU(d, disparity), index = zero;
        for (std::int64_t j = 1; j < in.labels; ++j) {
          const V s = hn::LoadU(d, score + j * 64);
          // A score that is no number wins, as everywhere in libtorch.
          const auto better =
              hn::Or(hn::Gt(s, best), hn::And(hn::Eq(best, best), hn::Not(hn::Eq(s, s))));
          best = hn::IfThenElse(better, s, best);
          chosen = hn::IfThenElse(better, hn::LoadU(d, disparity + j * 64), chosen);
          index = hn::IfThenElse(better, hn::Set(d, static_cast<float>(j)), index);
        }
        V sum = zero, apart = zero;
        for (std::int64_t j = 0; j < in.labels; ++j) {
          const V weight = hn::Exp(d, hn::Sub(hn::LoadU(d, score + j * 64), best));
          sum = hn::Add(sum, weight);
          apart = hn::MulAdd(weight, hn::AbsDiff(hn::LoadU(d, disparity + j * 64), chosen), apart);
        }
        // Zero times the score: not a number unless it is finite.
        const V share = hn::MulAdd(zero, best, hn::Div(one, sum));
        const std::int64_t at = (row * 8 + i / 8) * wide + x * 8 + i % 8;
        hn::StoreU(chosen, d, out.disparity + at);
        hn::StoreU(share, d, out.confidence + at);
        if (out.spread) hn::StoreU(hn::Div(apart, sum), d, out.spread + at);
        if (!out.index) continue;
        hn::Store(index, d, label);
        for (std::int64_t l = 0; l < kLanes; ++l)
          out.index[at + l] = static_cast<std::int64_t>(label[l]);
      }
    }
}

// v[a] <= v[b] afterwards.
template <class V>
HWY_INLINE void order(V& a, V& b) {
  const V low = hn::Min(a, b);
  b = hn::Max(a, b);
  a = low;
}

// Batcher's odd-even merge sort of 16 vectors, lane by lane; the compiler drops what the 8th
// smallest does not need.
template <class V>
HWY_INLINE void sort_16(V (&v)[16]) {
#pragma GCC unroll 4
  for (int p = 1; p < 16; p *= 2)
#pragma GCC unroll 4
    for (int k = p; k >= 1; k /= 2)
#pragma GCC unroll 16
      for (int j = k % p; j + k < 16; j += 2 * k)
#pragma GCC unroll 8
        for (int i = 0; i < k; ++i)
          if (i + j + k < 16 && (i + j) / (2 * p) == (i + j + k) / (2 * p))
            order(v[i + j], v[i + j + k]);
}

// The blocks of `lanes` pixels.
template <class D>
HWY_INLINE void medians(D d, const float* map, std::int64_t wide, float* out) {
  hn::Vec<D> v[16];
  for (int r = 0; r < 4; ++r)
    hn::LoadInterleaved4(d, map + r * wide, v[4 * r], v[4 * r + 1], v[4 * r + 2], v[4 * r + 3]);
  auto number = hn::Eq(v[0], v[0]);
  for (int i = 1; i < 16; ++i) number = hn::And(number, hn::Eq(v[i], v[i]));
  sort_16(v);
  const auto none = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
  hn::StoreU(hn::IfThenElse(number, v[7], none), d, out);
}

void median_blocks(const float* map, std::int64_t width, float* out, std::int64_t begin,
                   std::int64_t end) {
  const hn::ScalableTag<float> d;
  const hn::FixedTag<float, 1> one;
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  const std::int64_t wide = 4 * width;
  for (std::int64_t y = begin; y < end; ++y) {
    const float* from = map + 4 * y * wide;
    float* to = out + y * width;
    std::int64_t x = 0;
    for (; x + kLanes <= width; x += kLanes) medians(d, from + 4 * x, wide, to + x);
    for (; x < width; ++x) medians(one, from + 4 * x, wide, to + x);
  }
}

void unfold(const float* labels, const float* offsets, std::int64_t width, float* out,
            std::int64_t begin, std::int64_t end) {
  const hn::FixedTag<float, 4> d;
  const auto zero = hn::Zero(d), four = hn::Set(d, 4.0f);
  for (std::int64_t y = begin; y < end; ++y)
    for (std::int64_t x = 0; x < width; ++x) {
      const auto label = hn::Set(d, labels[y * width + x]);
      const float* from = offsets + (y * width + x) * 16;
      float* to = out + 16 * y * width + 4 * x;
      for (int r = 0; r < 4; ++r) {
        const auto value = hn::Add(label, hn::LoadU(d, from + 4 * r));
        // Max in this order leaves NaN as it is.
        hn::StoreU(hn::Mul(four, hn::Max(zero, value)), d, to + 4 * r * width);
      }
    }
}

void unfold_backward(const float* labels, const float* offsets, const float* above,
                     std::int64_t width, float* d_offsets, std::int64_t begin, std::int64_t end) {
  const hn::FixedTag<float, 4> d;
  const auto zero = hn::Zero(d), four = hn::Set(d, 4.0f);
  for (std::int64_t y = begin; y < end; ++y)
    for (std::int64_t x = 0; x < width; ++x) {
      const auto label = hn::Set(d, labels[y * width + x]);
      const std::int64_t at = (y * width + x) * 16;
      const float* from = above + 16 * y * width + 4 * x;
      for (int r = 0; r < 4; ++r) {
        const auto value = hn::Add(label, hn::LoadU(d, offsets + at + 4 * r));
        const auto slope = hn::Mul(four, hn::LoadU(d, from + 4 * r * width));
        hn::StoreU(hn::IfThenZeroElse(hn::Le(value, zero), slope), d, d_offsets + at + 4 * r);
      }
    }
}

// One cell of a blend: its pixels, and the cells around it.
struct BlendCell {
  // [3, 16] and [9, 16]; starts are relative to the cell's own.
  HWY_ALIGN float pixels[3 * kPixels], logits[kAround * kPixels];
  float colour[3 * kAround], start[kAround], trust;

  HWY_INLINE BlendCell(const BlendIn& in, std::int64_t row, std::int64_t x) {
    const std::int64_t image = row / in.rows, y = in.first + row % in.rows;
    const std::int64_t h = in.height, w = in.width;
    const float* head = in.head + (row * w + x) * kHead;
    for (std::int64_t i = 0; i < kPixels; ++i)
      for (std::int64_t p = 0; p < kAround; ++p) logits[p * kPixels + i] = head[i * kAround + p];
    trust = head[kHead - 1] / kColourUnit;
    for (std::int64_t c = 0; c < 3; ++c)
      for (std::int64_t r = 0; r < 4; ++r)
        std::copy_n(in.image + ((image * 3 + c) * 4 * h + 4 * y + r) * 4 * w + 4 * x, 4,
                    pixels + c * kPixels + 4 * r);
    const float own = in.start[(image * h + y) * w + x];
    for (std::int64_t p = 0; p < kAround; ++p) {
      const std::int64_t v = std::clamp<std::int64_t>(y + p / 3 - 1, 0, h - 1);
      const std::int64_t u = std::clamp<std::int64_t>(x + p % 3 - 1, 0, w - 1);
      start[p] = in.start[(image * h + v) * w + u] - own;
      for (std::int64_t c = 0; c < 3; ++c)
        colour[c * kAround + p] = in.colours[((image * 3 + c) * h + v) * w + u];
    }
  }
};

// Of some pixels of a cell: distances of colour and weights of the cells around, and the mean.
template <class D>
struct BlendLanes {
  using V = hn::Vec<D>;
  V distance[kAround], weight[kAround], mean;

  HWY_INLINE BlendLanes(D d, const BlendCell& cell, std::int64_t i) {
    const V red = hn::LoadU(d, cell.pixels + i), green = hn::LoadU(d, cell.pixels + kPixels + i),
            blue = hn::LoadU(d, cell.pixels + 2 * kPixels + i), trust = hn::Set(d, cell.trust);
    auto away = [&](V pixel, std::int64_t p) {
      return hn::Abs(hn::Sub(pixel, hn::Set(d, cell.colour[p])));
    };
    V most = hn::Set(d, -std::numeric_limits<float>::infinity());
    for (std::int64_t p = 0; p < kAround; ++p) {
      distance[p] =
          hn::Add(hn::Add(away(red, p), away(green, kAround + p)), away(blue, 2 * kAround + p));
      weight[p] = hn::MulAdd(trust, distance[p], hn::LoadU(d, cell.logits + p * kPixels + i));
      most = hn::Max(most, weight[p]);
    }
    V sum = hn::Zero(d);
    mean = sum;
    for (std::int64_t p = 0; p < kAround; ++p) {
      weight[p] = hn::Exp(d, hn::Sub(weight[p], most));
      sum = hn::Add(sum, weight[p]);
      mean = hn::MulAdd(weight[p], hn::Set(d, cell.start[p]), mean);
    }
    const V whole = hn::Div(hn::Set(d, 1.0f), sum);
    for (std::int64_t p = 0; p < kAround; ++p) weight[p] = hn::Mul(weight[p], whole);
    mean = hn::Mul(mean, whole);
  }
};

void blend(const BlendIn& in, float* out, std::int64_t begin, std::int64_t end) {
  const hn::CappedTag<float, kPixels> d;
  for (std::int64_t row = begin; row < end; ++row)
    for (std::int64_t x = 0; x < in.width; ++x) {
      const BlendCell cell(in, row, x);
      for (std::int64_t i = 0; i < kPixels; i += hn::MaxLanes(d))
        hn::StoreU(BlendLanes(d, cell, i).mean, d, out + (row * in.width + x) * kPixels + i);
    }
}

void blend_backward(const BlendIn& in, const float* above, float* d_head, std::int64_t begin,
                    std::int64_t end) {
  const hn::CappedTag<float, kPixels> d;
  HWY_ALIGN float slopes[kAround * kPixels];
  for (std::int64_t row = begin; row < end; ++row)
    for (std::int64_t x = 0; x < in.width; ++x) {
      const BlendCell cell(in, row, x);
      const float* from = above + (row * in.width + x) * kPixels;
      float* to = d_head + (row * in.width + x) * kHead;
      auto trusted = hn::Zero(d);
      for (std::int64_t i = 0; i < kPixels; i += hn::MaxLanes(d)) {
        const BlendLanes lanes(d, cell, i);
        const auto slope = hn::LoadU(d, from + i);
        for (std::int64_t p = 0; p < kAround; ++p) {
          const auto share = hn::Mul(
              lanes.weight[p], hn::Mul(slope, hn::Sub(hn::Set(d, cell.start[p]), lanes.mean)));
          hn::StoreU(share, d, slopes + p * kPixels + i);
          trusted = hn::MulAdd(share, lanes.distance[p], trusted);
        }
      }
      for (std::int64_t i = 0; i < kPixels; ++i)
        for (std::int64_t p = 0; p < kAround; ++p) to[i * kAround + p] = slopes[p * kPixels + i];
      to[kHead - 1] = hn::GetLane(hn::SumOfLanes(d, trusted)) / kColourUnit;
    }
}

}  // namespace nmrf::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nmrf::kernels {

HWY_EXPORT(transpose);
HWY_EXPORT(encode);
HWY_EXPORT(average);
HWY_EXPORT(winners);
HWY_EXPORT(median_blocks);
HWY_EXPORT(unfold);
HWY_EXPORT(unfold_backward);
HWY_EXPORT(blend);
HWY_EXPORT(blend_backward);

void transpose_map(const float* from, std::int64_t stride, std::int64_t channels,
                   std::int64_t width, float* to) {
  HWY_DYNAMIC_DISPATCH(transpose)(from, stride, channels, width, to);
}

void average_2x2(const float* from, std::int64_t width, std::int64_t channels, float* to,
                 std::int64_t begin, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(average)(from, width, channels, to, begin, end);
}

void encode_labels(const float* labels, float range, std::int64_t frequencies, float* out,
                   std::int64_t begin, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(encode)(labels, range, frequencies, out, begin, end);
}

void pick_winners(const WinnersIn& in, const WinnersOut& out, std::int64_t begin,
                  std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(winners)(in, out, begin, end);
}

void median_of_blocks(const float* map, std::int64_t width, float* out, std::int64_t begin,
                      std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(median_blocks)(map, width, out, begin, end);
}

void unfold_offsets(const float* labels, const float* offsets, std::int64_t width, float* out,
                    std::int64_t begin, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(unfold)(labels, offsets, width, out, begin, end);
}

void unfold_offsets_backward(const float* labels, const float* offsets, const float* above,
                             std::int64_t width, float* d_offsets, std::int64_t begin,
                             std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(unfold_backward)(labels, offsets, above, width, d_offsets, begin, end);
}

void blend_cells(const BlendIn& in, float* out, std::int64_t begin, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(blend)(in, out, begin, end);
}

void blend_cells_backward(const BlendIn& in, const float* above, float* d_head, std::int64_t begin,
                          std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(blend_backward)(in, above, d_head, begin, end);
}

}  // namespace nmrf::kernels
#endif
