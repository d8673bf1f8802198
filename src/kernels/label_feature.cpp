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
// Behind the channels of a buffer that spread_groups works in: three vectors.
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

// A row of pixels with the channels of a group apart: to[x, j, g] = from[x, g, j'], j' a
// permutation of the `size` channels that is the same for all. wide: groups and what pads them,
// which is cleared. other: groups * size floats and kSlack.
HWY_INLINE void part_groups(const float* from, std::int64_t column, std::int64_t width,
                            std::size_t groups, std::size_t size, std::size_t wide, float* other,
                            float* to) {
  const Floats d;
  const std::size_t channels = groups * size;
  for (std::int64_t x = 0; x < width; ++x, from += column, to += size * wide) {
    if (size % 2 != 0 || size / 2 * groups < kLanes) {
      for (std::size_t j = 0; j < size; ++j)
        for (std::size_t g = 0; g < wide; ++g)
          to[j * wide + g] = g < groups ? from[g * size + j] : 0.0f;
      continue;
    }
    // Channels of even and of odd number, then each of these in turn.
    const std::size_t half = channels / 2;
    std::size_t i = 0;
    for (; i + kLanes <= half; i += kLanes) {
      hn::Vec<Floats> even, odd;
      hn::LoadInterleaved2(d, from + 2 * i, even, odd);
      hn::StoreU(even, d, other + i);
      hn::StoreU(odd, d, other + half + i);
    }
    for (; i < half; ++i) {
      other[i] = from[2 * i];
      other[half + i] = from[2 * i + 1];
    }
    const std::size_t rest = size / 2;
    for (std::size_t part = 0; part < 2; ++part) {
      const float* own = other + part * half;
      float* out = to + part * rest * wide;
      if (rest == 3 && groups % kLanes == 0) {
        for (std::size_t g = 0; g < groups; g += kLanes) {
          hn::Vec<Floats> a, b, c;
          hn::LoadInterleaved3(d, own + 3 * g, a, b, c);
          hn::StoreU(a, d, out + g);
          hn::StoreU(b, d, out + wide + g);
          hn::StoreU(c, d, out + 2 * wide + g);
        }
        continue;
      }
      if (rest == 4 && groups % kLanes == 0) {
        for (std::size_t g = 0; g < groups; g += kLanes) {
          hn::Vec<Floats> a, b, c, e;
          hn::LoadInterleaved4(d, own + 4 * g, a, b, c, e);
          hn::StoreU(a, d, out + g);
          hn::StoreU(b, d, out + wide + g);
          hn::StoreU(c, d, out + 2 * wide + g);
          hn::StoreU(e, d, out + 3 * wide + g);
        }
        continue;
      }
      for (std::size_t j = 0; j < rest; ++j)
        for (std::size_t g = 0; g < wide; ++g)
          out[j * wide + g] = g < groups ? own[g * rest + j] : 0.0f;
    }
  }
}

// Correlations of a pixel with columns first .. first + count, group by group: [count, wide], those
// outside the image zero. left: [size, wide]; right: [width, size, wide].
HWY_INLINE void correlate(const float* left, const float* right, std::int64_t first,
                          std::int64_t count, std::int64_t width, std::size_t size,
                          std::size_t wide, float share, float* out) {
  const Floats d;
  const auto by = hn::Set(d, share);
  for (std::int64_t i = 0; i < count; ++i, out += wide) {
    if (first + i < 0 || first + i >= width) {
      std::fill_n(out, wide, 0.0f);
      continue;
    }
    const float* column = right + (first + i) * static_cast<std::int64_t>(size * wide);
    for (std::size_t g = 0; g < wide; g += kLanes) {
      auto sum = hn::Mul(hn::LoadU(d, left + g), hn::LoadU(d, column + g));
      for (std::size_t j = wide; j < size * wide; j += wide)
        sum = hn::MulAdd(hn::LoadU(d, left + j + g), hn::LoadU(d, column + j + g), sum);
      hn::StoreU(hn::Mul(sum, by), d, out + g);
    }
  }
}

// Correlations are linear in the right view: those with its columns are interpolated, not the
// columns.
void feature_forward(const FeatureShape& s, const FeatureMapsIn& in, float* out, std::int64_t begin,
                     std::int64_t end) {
  const auto c1 = static_cast<std::size_t>(s.channels1), c2 = static_cast<std::size_t>(s.channels2),
             groups = static_cast<std::size_t>(s.groups), size = groups ? c2 / groups : 0,
             wide = static_cast<std::size_t>(s.wide()), width = static_cast<std::size_t>(s.width),
             room = (groups + kLanes - 1) / kLanes * kLanes;
  const std::int64_t near = 2 * s.radius + 2;  // columns that a label and those around it read
  const std::size_t row_floats = width * size * room;
  tokens::ScratchPieces scratch(tokens::thread_scratch(2 * row_floats + c2 + kSlack +
                                                       static_cast<std::size_t>(near) * room + 64));
  float *left_row = scratch.take(row_floats), *right_row = scratch.take(row_floats),
        *other = scratch.take(c2 + kSlack),
        *products = scratch.take(static_cast<std::size_t>(near) * room);
  const float share = groups ? 1.0f / static_cast<float>(size) : 0.0f;
  const auto last = static_cast<float>(s.width - 1), reach = static_cast<float>(s.radius + 1);
  for (std::int64_t row = begin; row < end; ++row) {
    const float* left1 = row_of(in.left1, s.height, row);
    const float* right1 = row_of(in.right1, s.height, row);
    if (groups > 0) {
      part_groups(row_of(in.left2, s.height, row), in.left2.column, s.width, groups, size, room,
                  other, left_row);
      part_groups(row_of(in.right2, s.height, row), in.right2.column, s.width, groups, size, room,
                  other, right_row);
    }
    const float* label = in.labels + row * s.width * s.labels;
    float* to = out + row * s.width * s.labels * s.wide();
    for (std::int64_t x = 0; x < s.width; ++x)
      for (std::int64_t j = 0; j < s.labels; ++j, ++label, to += wide) {
        float* at = to;
        if (s.own && c1 > 0) {
          std::memcpy(at, left1 + x * in.left1.column, c1 * sizeof(float));
          at += c1;
        }
        const float position = static_cast<float>(x) - *label, lower = std::floor(position);
        // A label that is no number lies nowhere.
        if (!(lower >= -reach && lower <= last + reach)) {
          std::fill(at, to + wide, 0.0f);
          continue;
        }
        if (c1 > 0) {
          const Taps taps = taps_around(x, *label, 0, s.width);
          const float* r0 = right1 + taps.column[0] * in.right1.column;
          const float* r1 = right1 + taps.column[1] * in.right1.column;
          const float a = taps.weight[0], b = taps.weight[1];
          over_channels(c1, [&](auto d, std::size_t c) HWY_ATTR {
            const auto first = hn::Mul(hn::Set(d, a), hn::LoadU(d, r0 + c));
            hn::StoreU(hn::MulAdd(hn::Set(d, b), hn::LoadU(d, r1 + c), first), d, at + c);
          });
          at += c1;
        }
        if (groups == 0) continue;
        correlate(left_row + static_cast<std::size_t>(x) * size * room, right_row,
                  static_cast<std::int64_t>(lower) - s.radius, near, s.width, size, room, share,
                  products);
        const float part = position - lower;
        const float* product = products;
        for (std::int64_t i = 0; i + 1 < near; ++i, at += groups, product += room)
          over_channels(groups, [&](auto d, std::size_t g) HWY_ATTR {
            const auto first = hn::LoadU(d, product + g);
            const auto second = hn::LoadU(d, product + room + g);
            hn::StoreU(hn::MulAdd(hn::Set(d, part), hn::Sub(second, first), first), d, at + g);
          });
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
