#include "kernels/label_feature.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/label_feature.cpp"
#include <hwy/foreach_target.h>

// After foreach_target.h, which includes this file once for each instruction set.
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/scratch.h"

HWY_BEFORE_NAMESPACE();
namespace nmrf::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;
constexpr std::size_t kLanes = hn::MaxLanes(Floats());
// Behind the channels of a buffer that sum_groups and spread_groups work in: three vectors.
constexpr std::size_t kSlack = 4 * kLanes;

// step(d, c) for whole vectors, then for single channels.
template <class Step>
HWY_INLINE void over_channels(std::size_t channels, const Step& step) {
  std::size_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) step(Floats(), c);
  for (; c < channels; ++c) step(hn::CappedTag<float, 1>(), c);
}

// Where a label reads its row: two columns and their weights, zero outside the image.
struct Taps {
  std::int64_t column[2];
  float weight[2];
  bool any() const { return weight[0] != 0 || weight[1] != 0; }
};

// `around`: columns to the right of where the label reads.
HWY_INLINE Taps taps_around(std::int64_t x, float label, std::int64_t around, std::int64_t width) {
  const float position = static_cast<float>(x) - (label - static_cast<float>(around));
  const float lower = std::floor(position);
  const float fraction = position - lower, last = static_cast<float>(width - 1);
  Taps taps{{0, 0}, {0, 0}};
  // A label that is no number lies nowhere.
  if (lower >= 0 && lower <= last) {
    taps.column[0] = static_cast<std::int64_t>(lower);
    taps.weight[0] = 1 - fraction;
  }
  if (lower + 1 >= 0 && lower + 1 <= last) {
    taps.column[1] = static_cast<std::int64_t>(lower + 1);
    taps.weight[1] = fraction;
  }
  return taps;
}

// In place: each run of `size` values becomes their sum. x: groups * size floats and kSlack.
HWY_INLINE void sum_groups(float* x, std::size_t groups, std::size_t size) {
  const Floats d;
  for (; size % 3 == 0; size /= 3)
    for (std::size_t i = 0, count = groups * size / 3; i < count; i += kLanes) {
      hn::Vec<Floats> a, b, c;
      hn::LoadInterleaved3(d, x + 3 * i, a, b, c);
      hn::StoreU(hn::Add(hn::Add(a, b), c), d, x + i);
    }
  for (; size % 2 == 0; size /= 2)
    for (std::size_t i = 0, count = groups * size / 2; i < count; i += kLanes) {
      hn::Vec<Floats> a, b;
      hn::LoadInterleaved2(d, x + 2 * i, a, b);
      hn::StoreU(hn::Add(a, b), d, x + i);
    }
  if (size == 1) return;
  for (std::size_t g = 0; g < groups; ++g) {
    float sum = x[g * size];
    for (std::size_t j = 1; j < size; ++j) sum += x[g * size + j];
    x[g] = sum;
  }
}

// Each of the `groups` values of `from` repeated `size` times. Returns where the result lies:
// `from` or `other`, each of groups * size floats and kSlack.
HWY_INLINE float* spread_groups(float* from, float* other, std::size_t groups, std::size_t size) {
  const Floats d;
  std::size_t done = groups;
  for (; size % 2 == 0; size /= 2, done *= 2, std::swap(from, other))
    for (std::size_t i = 0; i < done; i += kLanes) {
      const auto v = hn::LoadU(d, from + i);
      hn::StoreInterleaved2(v, v, d, other + 2 * i);
    }
  for (; size % 3 == 0; size /= 3, done *= 3, std::swap(from, other))
    for (std::size_t i = 0; i < done; i += kLanes) {
      const auto v = hn::LoadU(d, from + i);
      hn::StoreInterleaved3(v, v, v, d, other + 3 * i);
    }
  if (size == 1) return from;
  for (std::size_t i = 0; i < done; ++i) std::fill_n(other + i * size, size, from[i]);
  return other;
}

template <class Map>
HWY_INLINE auto* row_of(const Map& map, std::int64_t height, std::int64_t row) {
  return map.data ? map.data + row / height * map.batch + row % height * map.row : nullptr;
}

void feature_forward(const FeatureShape& s, const FeatureMapsIn& in, float* out, std::int64_t begin,
                     std::int64_t end) {
  const auto c1 = static_cast<std::size_t>(s.channels1), c2 = static_cast<std::size_t>(s.channels2),
             groups = static_cast<std::size_t>(s.groups), size = groups ? c2 / groups : 0,
             wide = static_cast<std::size_t>(s.wide());
  float* product = tokens::thread_scratch(c2 + kSlack);
  const float share = groups ? 1.0f / static_cast<float>(size) : 0.0f;
  for (std::int64_t row = begin; row < end; ++row) {
    const float* left1 = row_of(in.left1, s.height, row);
    const float* right1 = row_of(in.right1, s.height, row);
    const float* left2 = row_of(in.left2, s.height, row);
    const float* right2 = row_of(in.right2, s.height, row);
    const float* label = in.labels + row * s.width * s.labels;
    float* to = out + row * s.width * s.labels * s.wide();
    for (std::int64_t x = 0; x < s.width; ++x)
      for (std::int64_t j = 0; j < s.labels; ++j, ++label, to += wide) {
        const Taps taps = taps_around(x, *label, 0, s.width);
        float* at = to;
        if (s.own && c1 > 0) {
          std::memcpy(at, left1 + x * in.left1.column, c1 * sizeof(float));
          at += c1;
        }
        if (c1 > 0 && taps.any()) {
          const float* r0 = right1 + taps.column[0] * in.right1.column;
          const float* r1 = right1 + taps.column[1] * in.right1.column;
          const float a = taps.weight[0], b = taps.weight[1];
          over_channels(c1, [&](auto d, std::size_t c) HWY_ATTR {
            const auto first = hn::Mul(hn::Set(d, a), hn::LoadU(d, r0 + c));
            hn::StoreU(hn::MulAdd(hn::Set(d, b), hn::LoadU(d, r1 + c), first), d, at + c);
          });
        } else {
          std::fill_n(at, c1, 0.0f);
        }
        at += c1;
        if (groups == 0) continue;
        const float* l = left2 + x * in.left2.column;
        for (std::int64_t around = -s.radius; around <= s.radius; ++around, at += groups) {
          const Taps near = taps_around(x, *label, around, s.width);
          if (!near.any()) {
            std::fill_n(at, groups, 0.0f);
            continue;
          }
          const float* r0 = right2 + near.column[0] * in.right2.column;
          const float* r1 = right2 + near.column[1] * in.right2.column;
          const float a = near.weight[0], b = near.weight[1];
          over_channels(c2, [&](auto d, std::size_t c) HWY_ATTR {
            const auto first = hn::Mul(hn::Set(d, a), hn::LoadU(d, r0 + c));
            const auto warped = hn::MulAdd(hn::Set(d, b), hn::LoadU(d, r1 + c), first);
            hn::StoreU(hn::Mul(warped, hn::LoadU(d, l + c)), d, product + c);
          });
          sum_groups(product, groups, size);
          over_channels(groups, [&](auto d, std::size_t g) HWY_ATTR {
            hn::StoreU(hn::Mul(hn::LoadU(d, product + g), hn::Set(d, share)), d, at + g);
          });
        }
      }
  }
}

// to += weight * from
HWY_INLINE void add_scaled(float* to, const float* from, float weight, std::size_t channels) {
  over_channels(channels, [&](auto d, std::size_t c) HWY_ATTR {
    hn::StoreU(hn::MulAdd(hn::Set(d, weight), hn::LoadU(d, from + c), hn::LoadU(d, to + c)), d,
               to + c);
  });
}

HWY_INLINE void clear_row(float* row, std::int64_t width, std::int64_t column, std::size_t c) {
  if (!row) return;
  for (std::int64_t x = 0; x < width; ++x) std::fill_n(row + x * column, c, 0.0f);
}

void feature_backward(const FeatureShape& s, const FeatureMapsIn& in, const float* above,
                      const FeatureMapsOut& out, std::int64_t begin, std::int64_t end) {
  const auto c1 = static_cast<std::size_t>(s.channels1), c2 = static_cast<std::size_t>(s.channels2),
             groups = static_cast<std::size_t>(s.groups), size = groups ? c2 / groups : 0,
             wide = static_cast<std::size_t>(s.wide());
  tokens::ScratchPieces scratch(tokens::thread_scratch(2 * (c2 + kSlack + 16)));
  float* buffer[2] = {scratch.take(c2 + kSlack), scratch.take(c2 + kSlack)};
  const float share = groups ? 1.0f / static_cast<float>(size) : 0.0f;
  for (std::int64_t row = begin; row < end; ++row) {
    const float* left2 = row_of(in.left2, s.height, row);
    const float* right2 = row_of(in.right2, s.height, row);
    float* d_left1 = row_of(out.left1, s.height, row);
    float* d_right1 = row_of(out.right1, s.height, row);
    float* d_left2 = row_of(out.left2, s.height, row);
    float* d_right2 = row_of(out.right2, s.height, row);
    clear_row(d_left1, s.width, out.left1.column, c1);
    clear_row(d_right1, s.width, out.right1.column, c1);
    clear_row(d_left2, s.width, out.left2.column, c2);
    clear_row(d_right2, s.width, out.right2.column, c2);
    const float* label = in.labels + row * s.width * s.labels;
    const float* from = above + row * s.width * s.labels * s.wide();
    for (std::int64_t x = 0; x < s.width; ++x)
      for (std::int64_t j = 0; j < s.labels; ++j, ++label, from += wide) {
        const float* at = from;
        if (s.own) {
          if (d_left1) add_scaled(d_left1 + x * out.left1.column, at, 1.0f, c1);
          at += c1;
        }
        const Taps taps = taps_around(x, *label, 0, s.width);
        if (d_right1)
          for (int t = 0; t < 2; ++t)
            if (taps.weight[t] != 0)
              add_scaled(d_right1 + taps.column[t] * out.right1.column, at, taps.weight[t], c1);
        at += c1;
        if (!d_left2 && !d_right2) continue;
        const float* l = left2 + x * in.left2.column;
        for (std::int64_t around = -s.radius; around <= s.radius; ++around, at += groups) {
          const Taps near = taps_around(x, *label, around, s.width);
          if (!near.any()) continue;
          over_channels(groups, [&](auto d, std::size_t g) HWY_ATTR {
            hn::StoreU(hn::Mul(hn::LoadU(d, at + g), hn::Set(d, share)), d, buffer[0] + g);
          });
          const float* e = spread_groups(buffer[0], buffer[1], groups, size);
          const float a = near.weight[0], b = near.weight[1];
          if (d_left2) {
            float* to = d_left2 + x * out.left2.column;
            const float* r0 = right2 + near.column[0] * in.right2.column;
            const float* r1 = right2 + near.column[1] * in.right2.column;
            over_channels(c2, [&](auto d, std::size_t c) HWY_ATTR {
              const auto first = hn::Mul(hn::Set(d, a), hn::LoadU(d, r0 + c));
              const auto warped = hn::MulAdd(hn::Set(d, b), hn::LoadU(d, r1 + c), first);
              hn::StoreU(hn::MulAdd(hn::LoadU(d, e + c), warped, hn::LoadU(d, to + c)), d, to + c);
            });
          }
          if (!d_right2) continue;
          float* to0 = d_right2 + near.column[0] * out.right2.column;
          float* to1 = d_right2 + near.column[1] * out.right2.column;
          over_channels(c2, [&](auto d, std::size_t c) HWY_ATTR {
            const auto slope = hn::Mul(hn::LoadU(d, e + c), hn::LoadU(d, l + c));
            // One after the other: outside the image both may be the same column.
            hn::StoreU(hn::MulAdd(hn::Set(d, a), slope, hn::LoadU(d, to0 + c)), d, to0 + c);
            hn::StoreU(hn::MulAdd(hn::Set(d, b), slope, hn::LoadU(d, to1 + c)), d, to1 + c);
          });
        }
      }
  }
}

}  // namespace nmrf::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nmrf::kernels {

HWY_EXPORT(feature_forward);
HWY_EXPORT(feature_backward);

void label_feature_forward(const FeatureShape& shape, const FeatureMapsIn& in, float* out,
                           std::int64_t begin, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(feature_forward)(shape, in, out, begin, end);
}

void label_feature_backward(const FeatureShape& shape, const FeatureMapsIn& in, const float* above,
                            const FeatureMapsOut& gradient, std::int64_t begin, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(feature_backward)(shape, in, above, gradient, begin, end);
}

}  // namespace nmrf::kernels
#endif
