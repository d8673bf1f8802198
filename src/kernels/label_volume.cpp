#include "kernels/label_volume.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/label_volume.cpp"
#include <hwy/foreach_target.h>

// After foreach_target.h, which includes this file once for each instruction set.
#include <hwy/contrib/math/math-inl.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/modals.h"
#include "kernels/pack.h"
#include "kernels/pointwise-inl.h"
#include "kernels/scratch.h"

HWY_BEFORE_NAMESPACE();
namespace nmrf::kernels::HWY_NAMESPACE {

namespace gemm = tokens::HWY_NAMESPACE;
namespace hn = hwy::HWY_NAMESPACE;
using gemm::Floats;
using gemm::kLanes;
using gemm::Vector;
using tokens::padded;

constexpr std::size_t kPixels = 24;  // correlated at once with the columns their planes reach
constexpr std::size_t kBorder = kScoreTaps / 2;
constexpr std::size_t kSlack = 2 * tokens::kPad;  // vectors may reach this far behind a buffer

struct Sizes {
  explicit Sizes(const VolumeShape& s)
      : width(s.width),
        channels(s.channels),
        groups(s.groups),
        planes(s.planes),
        size(channels / groups),
        hidden1(s.hidden1),
        hidden2(s.hidden2),
        long_planes(planes + 2 * kBorder),
        band(padded(width) + tokens::kPad) {}
  std::size_t width, channels, groups, planes, size, hidden1, hidden2;
  std::size_t long_planes;  // with two empty planes at either end
  std::size_t band;         // row stride of products of pixels and columns
};

template <class Map>
HWY_INLINE auto* row_of(const Map& map, std::int64_t height, std::int64_t row) {
  return map.data ? map.data + row / height * map.batch + row % height * map.row : nullptr;
}

// A layer's activations of one pixel, [long_planes, channels]: the empty planes are cleared once
// and never written.
HWY_INLINE float* take_planes(tokens::ScratchPieces& scratch, const Sizes& n,
                              std::size_t channels) {
  const std::size_t floats = n.long_planes * channels + kSlack;
  float* piece = scratch.take(floats);
  std::fill(piece, piece + floats, 0.0f);
  return piece;
}
constexpr std::size_t planes_floats(const Sizes& n, std::size_t channels) {
  return n.long_planes * channels + kSlack + 16;
}

// A convolution of 5 taps along the planes is a product of rows that overlap: row z begins at plane
// z of the padded input and is five planes long.
HWY_INLINE void convolve(const Sizes& n, const float* in, std::size_t in_channels,
                         const float* packed, std::size_t out_channels, const float* bias,
                         bool relu, float* out) {
  const std::size_t deep = static_cast<std::size_t>(kScoreTaps) * in_channels;
  for (std::size_t z = 0; z < n.planes; z += tokens::kMostRows) {
    const std::size_t rows = std::min(tokens::kMostRows, n.planes - z);
    gemm::multiply(
        {.first = in + z * in_channels, .stride = in_channels, .k = deep}, rows, packed,
        out_channels,
        {.out = out + z * out_channels, .stride = out_channels, .bias = bias, .relu = relu});
  }
}

struct Hidden {
  float *first, *second;  // padded with empty planes
};

HWY_INLINE void hidden_layers(const Sizes& n, const ScoreWeights& w, const float* line, Hidden h) {
  convolve(n, line, n.groups, w.forward[0], n.hidden1, w.bias[0], true,
           h.first + kBorder * n.hidden1);
  convolve(n, h.first, n.hidden1, w.forward[1], n.hidden2, w.bias[1], true,
           h.second + kBorder * n.hidden2);
}

// cost[z] = bias + sum over taps t of w_t . second[z + t - 2]. `taps`: kScorePad floats for each of
// long_planes, the empty ones clear. False when a cost is no number or infinitely large.
HWY_INLINE bool last_layer(const Sizes& n, const ScoreWeights& w, const float* second, float* taps,
                           float* cost) {
  const float* in = second + kBorder * n.hidden2;
  float* out = taps + kBorder * kScorePad;
  for (std::size_t z = 0; z < n.planes; z += tokens::kMostRows)
    gemm::multiply({.first = in + z * n.hidden2, .stride = n.hidden2, .k = n.hidden2},
                   std::min(tokens::kMostRows, n.planes - z), w.forward[2], kScorePad,
                   {.out = out + z * kScorePad, .stride = kScorePad});
  bool fine = true;
  for (std::size_t z = 0; z < n.planes; ++z) {
    float sum = w.last_bias;
    for (std::size_t t = 0; t < kScoreTaps; ++t) sum += taps[(z + t) * kScorePad + t];
    cost[z] = sum;
    fine = fine && sum < std::numeric_limits<float>::infinity();
  }
  return fine;
}

// prob = softmax(cost); modal = prob, but at most 1e-3 where a neighbour is larger. modal has a
// float before it and a vector behind it; cost and prob are written to a multiple of a vector.
HWY_INLINE void find_modals(std::size_t planes, bool fine, float* cost, float* prob, float* modal) {
  const Floats d;
  const std::size_t whole = (planes + kLanes - 1) / kLanes * kLanes;
  std::fill(cost + planes, cost + whole, -std::numeric_limits<float>::infinity());
  Vector most = hn::LoadU(d, cost);
  for (std::size_t z = kLanes; z < whole; z += kLanes) most = hn::Max(most, hn::LoadU(d, cost + z));
  most = hn::MaxOfLanes(d, most);
  Vector sum = hn::Zero(d);
  for (std::size_t z = 0; z < whole; z += kLanes) {
    const Vector e = hn::Exp(d, hn::Sub(hn::LoadU(d, cost + z), most));
    hn::StoreU(e, d, prob + z);
    sum = hn::Add(sum, e);
  }
  const float total = gemm::sum_lanes(sum);
  const Vector by = hn::Set(d, total), floor = hn::Set(d, 1e-3f);
  for (std::size_t z = 0; z < whole; z += kLanes)
    hn::StoreU(hn::Div(hn::LoadU(d, prob + z), by), d, prob + z);
  if (!fine || !(total > 0)) {  // no probabilities at all
    std::fill(prob, prob + planes, std::numeric_limits<float>::quiet_NaN());
    std::copy(prob, prob + planes, modal);
    return;
  }
  prob[-1] = 0;
  for (std::size_t z = 0; z < whole; z += kLanes) {
    const Vector p = hn::LoadU(d, prob + z);
    const Vector beside = hn::Max(hn::LoadU(d, prob + z - 1), hn::LoadU(d, prob + z + 1));
    hn::StoreU(hn::IfThenElse(hn::Ge(p, beside), p, hn::Min(p, floor)), d, modal + z);
  }
}

// line[z, g] = share * product_g[x - z] for planes that see a column, else 0. `product`: a row of
// each group, `stride` apart, indexed by column.
HWY_INLINE void line_of(const Sizes& n, const float* product, std::size_t stride, std::size_t x,
                        float share, float* line) {
  const Floats d;
  const std::size_t seen = std::min(n.planes, x + 1);
  std::size_t z = 0;
  if (n.groups == 4)
    for (const Vector by = hn::Set(d, share); z + kLanes <= seen; z += kLanes) {
      const float* at = product + x - z - (kLanes - 1);
      auto group = [&](std::size_t g) HWY_ATTR {
        return hn::Mul(by, hn::Reverse(d, hn::LoadU(d, at + g * stride)));
      };
      hn::StoreInterleaved4(group(0), group(1), group(2), group(3), d, line + 4 * z);
    }
  for (; z < seen; ++z)
    for (std::size_t g = 0; g < n.groups; ++g)
      line[z * n.groups + g] = share * product[g * stride + x - z];
  std::fill(line + seen * n.groups, line + n.planes * n.groups, 0.0f);
}

// The reverse: product_g[x - z] = share * line[z, g].
HWY_INLINE void product_of(const Sizes& n, const float* line, std::size_t x, float share,
                           float* product, std::size_t stride) {
  const Floats d;
  const std::size_t seen = std::min(n.planes, x + 1);
  std::size_t z = 0;
  if (n.groups == 4)
    for (const Vector by = hn::Set(d, share); z + kLanes <= seen; z += kLanes) {
      Vector g0, g1, g2, g3;
      hn::LoadInterleaved4(d, line + 4 * z, g0, g1, g2, g3);
      float* at = product + x - z - (kLanes - 1);
      hn::StoreU(hn::Mul(by, hn::Reverse(d, g0)), d, at);
      hn::StoreU(hn::Mul(by, hn::Reverse(d, g1)), d, at + stride);
      hn::StoreU(hn::Mul(by, hn::Reverse(d, g2)), d, at + 2 * stride);
      hn::StoreU(hn::Mul(by, hn::Reverse(d, g3)), d, at + 3 * stride);
    }
  for (; z < seen; ++z)
    for (std::size_t g = 0; g < n.groups; ++g)
      product[g * stride + x - z] = share * line[z * n.groups + g];
}

void volume_forward(const VolumeShape& s, const PixelMap& left, const PixelMap& right,
                    const ScoreWeights& w, const VolumeOut& out, std::int64_t begin,
                    std::int64_t end) {
  const Sizes n(s);
  const std::size_t panels = tokens::packed_size(n.size, n.width), stride = kPixels * n.band;
  const std::size_t room = padded(n.planes) + tokens::kPad;
  tokens::ScratchPieces scratch(tokens::thread_scratch(
      n.groups * (panels + stride) + planes_floats(n, n.groups) + planes_floats(n, n.hidden1) +
      planes_floats(n, n.hidden2) + planes_floats(n, kScorePad) + 3 * room + 64));
  float* packed = scratch.take(n.groups * panels);
  float* product = scratch.take(n.groups * stride);
  float* line = take_planes(scratch, n, n.groups);
  const Hidden hidden{take_planes(scratch, n, n.hidden1), take_planes(scratch, n, n.hidden2)};
  float* taps = take_planes(scratch, n, kScorePad);
  float* cost = scratch.take(room);
  float* prob = scratch.take(room + 32) + 16;
  std::fill(prob - 16, prob - 16 + room + 16, 0.0f);
  float* modal = cost;  // costs are no longer needed then
  thread_local ModalPicker picker(0);
  picker.resize(s.planes);
  const float share = 1.0f / static_cast<float>(n.size);

  for (std::int64_t row = begin; row < end; ++row) {
    const float* from = row_of(left, s.height, row);
    const float* other = row_of(right, s.height, row);
    for (std::size_t g = 0; g < n.groups; ++g)
      tokens::pack_transposed(other + g * n.size, static_cast<std::size_t>(right.column), n.size,
                              n.width, n.size, 0, packed + g * panels);
    for (std::size_t x0 = 0; x0 < n.width; x0 += kPixels) {
      const std::size_t pixels = std::min(kPixels, n.width - x0);
      const std::size_t lowest = x0 + 1 > n.planes ? x0 + 1 - n.planes : 0;
      const std::size_t first = lowest / gemm::kPanel * gemm::kPanel;
      const std::size_t last =
          std::min(n.width, (x0 + pixels + gemm::kPanel - 1) / gemm::kPanel * gemm::kPanel);
      for (std::size_t g = 0; g < n.groups; ++g)
        gemm::multiply({.first = from + x0 * left.column + g * n.size,
                        .stride = static_cast<std::size_t>(left.column),
                        .k = n.size},
                       pixels, packed + g * panels + first * n.size, last - first,
                       {.out = product + g * stride + first, .stride = n.band});
      for (std::size_t i = 0; i < pixels; ++i) {
        const std::size_t x = x0 + i;
        const std::size_t pixel = static_cast<std::size_t>(row) * n.width + x;
        float* values = line + kBorder * n.groups;
        line_of(n, product + i * n.band, stride, x, share, values);
        if (out.volume)
          std::memcpy(out.volume + pixel * n.planes * n.groups, values,
                      n.planes * n.groups * sizeof(float));
        hidden_layers(n, w, line, hidden);
        const bool fine = last_layer(n, w, hidden.second, taps, cost);
        std::memcpy(out.cost + pixel * n.planes, cost, n.planes * sizeof(float));
        find_modals(n.planes, fine, cost, prob, modal);
        std::memcpy(out.prob + pixel * n.planes, prob, n.planes * sizeof(float));
        picker.pick(modal, s.labels, out.seeds + pixel * static_cast<std::size_t>(s.labels));
      }
    }
  }
}

// sums[c] += column c of x: [rows, columns]
HWY_INLINE void add_sums(const float* x, std::size_t rows, std::size_t columns, float* sums) {
  const Floats d;
  if (columns == 1) {
    float sum = 0;
    for (std::size_t r = 0; r < rows; ++r) sum += x[r];
    sums[0] += sum;
    return;
  }
  std::size_t c = 0;
  for (; c + kLanes <= columns; c += kLanes) {
    Vector even = hn::Zero(d), odd = even;
    std::size_t r = 0;
    for (; r + 2 <= rows; r += 2) {
      even = hn::Add(even, hn::LoadU(d, x + r * columns + c));
      odd = hn::Add(odd, hn::LoadU(d, x + (r + 1) * columns + c));
    }
    if (r < rows) even = hn::Add(even, hn::LoadU(d, x + r * columns + c));
    hn::StoreU(hn::Add(hn::LoadU(d, sums + c), hn::Add(even, odd)), d, sums + c);
  }
  for (; c < columns; ++c) {
    float sum = 0;
    for (std::size_t r = 0; r < rows; ++r) sum += x[r * columns + c];
    sums[c] += sum;
  }
}

// to += from
HWY_INLINE void add(const float* from, std::size_t floats, float* to) {
  const Floats d;
  std::size_t i = 0;
  for (; i + kLanes <= floats; i += kLanes)
    hn::StoreU(hn::Add(hn::LoadU(d, to + i), hn::LoadU(d, from + i)), d, to + i);
  for (; i < floats; ++i) to[i] += from[i];
}

// The gradient of a pixel's line from that of its cost, added to d_line; sums unless null.
struct ScoreBackward {
  const Sizes& n;
  const ScoreWeights& w;
  const ScoreSums& at;
  Hidden hidden;    // recomputed
  Hidden gradient;  // padded as well
  float* d_cost;    // [long_planes], the empty ones clear

  HWY_INLINE void operator()(const float* line, float* d_line, float* sums) const {
    float* d_second = gradient.second + kBorder * n.hidden2;
    float* d_first = gradient.first + kBorder * n.hidden1;
    const float* d_last = d_cost + kBorder;
    hidden_layers(n, w, line, hidden);
    convolve(n, d_cost, 1, w.backward[2], n.hidden2, nullptr, false, d_second);
    gemm::cut_rows(d_second, hidden.second + kBorder * n.hidden2, 0, 1, n.planes * n.hidden2);
    convolve(n, gradient.second, n.hidden2, w.backward[1], n.hidden1, nullptr, false, d_first);
    gemm::cut_rows(d_first, hidden.first + kBorder * n.hidden1, 0, 1, n.planes * n.hidden1);
    if (sums) {
      layer_sums(2, d_last, 1, hidden.second, n.hidden2, sums);
      layer_sums(1, d_second, n.hidden2, hidden.first, n.hidden1, sums);
      layer_sums(0, d_first, n.hidden1, line, n.groups, sums);
    }
    if (d_line)
      convolve(n, gradient.first, n.hidden1, w.backward[0], n.groups, nullptr, false, d_line);
  }

  HWY_INLINE void layer_sums(int layer, const float* above, std::size_t out, const float* below,
                             std::size_t in, float* sums) const {
    gemm::multiply_outer(above, out, out, below, in, kScoreTaps * in, n.planes,
                         sums + at.weight[layer], padded(kScoreTaps * in));
    add_sums(above, n.planes, out, sums + at.bias[layer]);
  }
};

void volume_backward(const VolumeShape& s, const PixelMap& left, const PixelMap& right,
                     const ScoreWeights& w, const float* volume, const float* d_cost,
                     const float* d_volume, const MutablePixelMap& d_left,
                     const MutablePixelMap& d_right, float* sums, std::int64_t begin,
                     std::int64_t end) {
  const Sizes n(s);
  const ScoreSums at(s);
  const bool descends = d_left.data || d_right.data;
  const std::size_t panels = tokens::packed_size(n.width, n.size), stride = kPixels * n.band;
  const std::size_t wide = padded(n.size);
  tokens::ScratchPieces scratch(tokens::thread_scratch(
      n.groups * (panels + stride + kPixels * wide + n.width * wide + 64) +
      2 * (planes_floats(n, n.groups) + planes_floats(n, n.hidden1) + planes_floats(n, n.hidden2)) +
      planes_floats(n, 1)));
  float* packed = scratch.take(n.groups * panels);             // the right row
  float* product = scratch.take(n.groups * stride);            // gradient by pixel and column
  float* own = scratch.take(kPixels * wide);                   // a group of the left pixels
  float* d_columns = scratch.take(n.groups * n.width * wide);  // gradient of the right row
  float* line = take_planes(scratch, n, n.groups);
  float* d_line = take_planes(scratch, n, n.groups);
  const Hidden hidden{take_planes(scratch, n, n.hidden1), take_planes(scratch, n, n.hidden2)};
  const Hidden gradient{take_planes(scratch, n, n.hidden1), take_planes(scratch, n, n.hidden2)};
  const ScoreBackward score{n, w, at, hidden, gradient, take_planes(scratch, n, 1)};
  const float share = 1.0f / static_cast<float>(n.size);
  const std::size_t floats = n.planes * n.groups;

  for (std::int64_t row = begin; row < end; ++row) {
    const float* from = row_of(left, s.height, row);
    const float* other = row_of(right, s.height, row);
    float* to = row_of(d_left, s.height, row);
    float* to_other = row_of(d_right, s.height, row);
    if (to)
      for (std::size_t g = 0; g < n.groups; ++g)
        tokens::pack_rows(other + g * n.size, static_cast<std::size_t>(right.column), n.width,
                          n.size, packed + g * panels);
    std::fill(d_columns, d_columns + n.groups * n.width * wide, 0.0f);
    for (std::size_t x0 = 0; x0 < n.width; x0 += kPixels) {
      const std::size_t pixels = std::min(kPixels, n.width - x0);
      if (descends) std::fill(product, product + n.groups * stride, 0.0f);
      for (std::size_t i = 0; i < pixels; ++i) {
        const std::size_t x = x0 + i;
        const std::size_t pixel = static_cast<std::size_t>(row) * n.width + x;
        float* below = d_line + kBorder * n.groups;
        if (d_cost) {
          std::memcpy(line + kBorder * n.groups, volume + pixel * floats, floats * sizeof(float));
          std::memcpy(score.d_cost + kBorder, d_cost + pixel * n.planes, n.planes * sizeof(float));
          score(line, descends ? below : nullptr, sums);
          if (d_volume && descends) add(d_volume + pixel * floats, floats, below);
        } else {
          std::memcpy(below, d_volume + pixel * floats, floats * sizeof(float));
        }
        if (descends) product_of(n, below, x, share, product + i * n.band, stride);
      }
      if (!descends) continue;
      const std::size_t lowest = x0 + 1 > n.planes ? x0 + 1 - n.planes : 0;
      for (std::size_t g = 0; g < n.groups; ++g) {
        if (to)
          gemm::multiply({.first = product + g * stride, .stride = n.band, .k = n.width}, pixels,
                         packed + g * panels, n.size,
                         {.out = to + x0 * d_left.column + g * n.size,
                          .stride = static_cast<std::size_t>(d_left.column)});
        if (!to_other) continue;
        gemm::copy_rows(from + x0 * left.column + g * n.size, static_cast<std::size_t>(left.column),
                        pixels, n.size, own, wide);
        gemm::multiply_outer(product + g * stride + lowest, n.band, x0 + pixels - lowest, own, wide,
                             n.size, pixels, d_columns + (g * n.width + lowest) * wide, wide);
      }
    }
    if (!to_other) continue;
    for (std::size_t g = 0; g < n.groups; ++g)
      gemm::copy_rows(d_columns + g * n.width * wide, wide, n.width, n.size, to_other + g * n.size,
                      static_cast<std::size_t>(d_right.column));
  }
}

}  // namespace nmrf::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nmrf::kernels {

HWY_EXPORT(volume_forward);
HWY_EXPORT(volume_backward);

void label_volume_forward(const VolumeShape& shape, const PixelMap& left, const PixelMap& right,
                          const ScoreWeights& weights, const VolumeOut& out, std::int64_t begin,
                          std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(volume_forward)(shape, left, right, weights, out, begin, end);
}

ScoreSums::ScoreSums(const VolumeShape& s) : total(0) {
  const std::int64_t in[3] = {s.groups, s.hidden1, s.hidden2}, out[3] = {s.hidden1, s.hidden2, 1};
  auto take = [&](std::size_t floats) {
    const std::size_t at = total;
    total += floats;
    return at;
  };
  for (int i = 0; i < 3; ++i) {
    weight[i] = take(static_cast<std::size_t>(out[i]) *
                     tokens::padded(static_cast<std::size_t>(kScoreTaps * in[i])));
    bias[i] = take(tokens::padded(static_cast<std::size_t>(out[i])));
  }
}

void label_volume_backward(const VolumeShape& shape, const PixelMap& left, const PixelMap& right,
                           const ScoreWeights& weights, const float* volume, const float* d_cost,
                           const float* d_volume, const MutablePixelMap& d_left,
                           const MutablePixelMap& d_right, float* sums, std::int64_t begin,
                           std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(volume_backward)
  (shape, left, right, weights, volume, d_cost, d_volume, d_left, d_right, sums, begin, end);
}

void volume_lookup(const VolumeShape& s, const float* volume, const std::int64_t* seeds,
                   std::int64_t radius, float* out, std::int64_t begin, std::int64_t end) {
  const std::int64_t taps = 2 * radius + 1;
  for (std::int64_t pixel = begin; pixel < end; ++pixel) {
    const float* line = volume + pixel * s.planes * s.groups;
    float* to = out + pixel * s.labels * s.groups * taps;
    for (std::int64_t j = 0; j < s.labels; ++j, to += s.groups * taps) {
      const std::int64_t first = seeds[pixel * s.labels + j] - radius;
      for (std::int64_t t = 0; t < taps; ++t) {
        const float* plane = line + std::clamp<std::int64_t>(first + t, 0, s.planes - 1) * s.groups;
        for (std::int64_t g = 0; g < s.groups; ++g) to[g * taps + t] = plane[g];
      }
    }
  }
}

void volume_lookup_backward(const VolumeShape& s, const float* above, const std::int64_t* seeds,
                            std::int64_t radius, float* d_volume, std::int64_t begin,
                            std::int64_t end) {
  const std::int64_t taps = 2 * radius + 1;
  for (std::int64_t pixel = begin; pixel < end; ++pixel) {
    float* line = d_volume + pixel * s.planes * s.groups;
    std::fill(line, line + s.planes * s.groups, 0.0f);
    const float* from = above + pixel * s.labels * s.groups * taps;
    for (std::int64_t j = 0; j < s.labels; ++j, from += s.groups * taps) {
      const std::int64_t first = seeds[pixel * s.labels + j] - radius;
      for (std::int64_t t = 0; t < taps; ++t) {
        float* plane = line + std::clamp<std::int64_t>(first + t, 0, s.planes - 1) * s.groups;
        for (std::int64_t g = 0; g < s.groups; ++g) plane[g] += from[g * taps + t];
      }
    }
  }
}

}  // namespace nmrf::kernels
#endif
