#include "kernels/resample.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/resample.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// After foreach_target.h, which includes this file once for each instruction set.
#include <algorithm>
#include <cmath>

#ifndef NMRF_RESAMPLE_ONCE
#define NMRF_RESAMPLE_ONCE
namespace nmrf::kernels {

struct RowsJob {
  const ResampleAxis &columns, &rows;
  std::size_t source_width, width;  // pixels
  float bias;
};

// Floats of a row of RGB pixels, with room for a vector behind them.
inline std::size_t padded(std::size_t pixels) { return (3 * pixels + 16 + 15) / 16 * 16; }

}  // namespace nmrf::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace nmrf::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;

// Whole vectors of [0, count), the last one moved back so that it ends at `count`; one by one where
// there is less than a vector.
template <class Body>
HWY_INLINE void for_overlapping(std::size_t count, const Body& body) {
  const Floats f;
  const std::size_t lanes = hn::Lanes(f);
  if (count < lanes) {
    const hn::CappedTag<float, 1> one;
    for (std::size_t i = 0; i < count; ++i) body(one, i);
    return;
  }
  for (std::size_t i = 0; i < count; i += lanes) body(f, std::min(i, count - lanes));
}

// `to` may be written up to a vector behind `count`.
HWY_INLINE void to_floats(const std::uint8_t* from, std::size_t count, float* to) {
  for_overlapping(count, [&](const auto& f, std::size_t i) HWY_ATTR {
    const hn::RebindToSigned<std::decay_t<decltype(f)>> ints;
    const hn::Rebind<std::uint8_t, std::decay_t<decltype(f)>> bytes;
    hn::StoreU(hn::ConvertTo(f, hn::PromoteTo(ints, hn::LoadU(bytes, from + i))), f, to + i);
  });
}

// A source row of interleaved RGB floats to `width` pixels. Pixels are held in four lanes, of which
// the last belongs to the next pixel: reads and writes go one float beyond the rows.
template <int kTaps>
HWY_INLINE void filter_row_of(const float* row, const ResampleAxis& axis, std::size_t width,
                              float* to) {
  const hn::FixedTag<float, 4> four;
  const int taps = kTaps > 0 ? kTaps : axis.taps;
  const float* weights = axis.weights.data();
  for (std::size_t x = 0; x < width; ++x, weights += taps) {
    const float* pixel = row + 3 * axis.first[x];
    auto sum = hn::Mul(hn::LoadU(four, pixel), hn::Set(four, weights[0]));
    for (int t = 1; t < taps; ++t)
      sum = hn::MulAdd(hn::LoadU(four, pixel + 3 * t), hn::Set(four, weights[t]), sum);
    hn::StoreU(sum, four, to + 3 * x);
  }
}

void FilterRow(const float* row, const ResampleAxis& axis, std::size_t width, float* to) {
  switch (axis.taps) {
    case 2:
      return filter_row_of<2>(row, axis, width, to);
    case 3:
      return filter_row_of<3>(row, axis, width, to);
    case 4:
      return filter_row_of<4>(row, axis, width, to);
    default:
      return filter_row_of<0>(row, axis, width, to);
  }
}

// The weighted sum of `taps` rows to bytes; row `first` + t is in slot (first + t) % taps.
template <int kTaps>
HWY_INLINE void combine_rows_of(const float* rows, std::size_t step, int first, int taps,
                                const float* weights, float bias, std::size_t count,
                                std::uint8_t* to) {
  if (kTaps > 0) taps = kTaps;
  for_overlapping(count, [&](const auto& f, std::size_t i) HWY_ATTR {
    const hn::Rebind<std::uint8_t, std::decay_t<decltype(f)>> bytes;
    auto sum = hn::Set(f, bias);
    int slot = first % taps;
    for (int t = 0; t < taps; ++t) {
      const float* row = rows + static_cast<std::size_t>(slot) * step;
      sum = hn::MulAdd(hn::LoadU(f, row + i), hn::Set(f, weights[t]), sum);
      if (++slot == taps) slot = 0;
    }
    hn::StoreU(hn::DemoteTo(bytes, hn::NearestInt(sum)), bytes, to + i);
  });
}

void ResampleRows(const RowsJob& job, const std::uint8_t* source, std::ptrdiff_t source_stride,
                  std::uint8_t* result, std::ptrdiff_t stride, int begin, int end, float* work) {
  const ResampleAxis& axis = job.rows;
  const std::size_t step = padded(job.width);
  float* ring = work + padded(job.source_width);  // source row y, filtered, is in slot y % taps
  int next = 0;                                   // the source row to be filtered next
  for (int y = begin; y < end; ++y) {
    const int first = axis.first[static_cast<std::size_t>(y)];
    for (next = std::max(next, first); next < first + axis.taps; ++next) {
      to_floats(source + next * source_stride, 3 * job.source_width, work);
      FilterRow(work, job.columns, job.width,
                ring + static_cast<std::size_t>(next % axis.taps) * step);
    }
    const float* weights = axis.weights.data() + static_cast<std::ptrdiff_t>(y) * axis.taps;
    auto combine = axis.taps == 4 ? combine_rows_of<4> : combine_rows_of<0>;
    combine(ring, step, first, axis.taps, weights, job.bias, 3 * job.width, result + y * stride);
  }
}

void HalveToFloat(const std::uint8_t* source, std::ptrdiff_t source_stride, int source_width,
                  int source_height, float* result, int width, int begin, int end) {
  const Floats f;
  const hn::RebindToSigned<Floats> ints;
  const hn::Rebind<std::uint16_t, Floats> words;
  const hn::Repartition<std::uint8_t, decltype(words)> bytes;
  const int lanes = static_cast<int>(hn::Lanes(f));
  const auto quarter = hn::Set(f, 0.25f);
  const auto low = hn::Set(words, std::uint16_t{0xff});
  auto pairs = [&](auto v) HWY_ATTR {
    const auto w = hn::BitCast(words, v);
    return hn::Add(hn::And(w, low), hn::ShiftRight<8>(w));
  };
  auto mean = [&](auto above, auto below) HWY_ATTR {
    const auto sum = hn::Add(pairs(above), pairs(below));
    return hn::Mul(hn::ConvertTo(f, hn::PromoteTo(ints, sum)), quarter);
  };
  for (int y = begin; y < end; ++y) {
    const std::uint8_t* above = source + std::min(2 * y, source_height - 1) * source_stride;
    const std::uint8_t* below = source + std::min(2 * y + 1, source_height - 1) * source_stride;
    float* to = result + static_cast<std::ptrdiff_t>(y) * width * 3;
    int x = 0;
    for (; x + lanes <= std::min(width, source_width / 2); x += lanes) {
      hn::Vec<decltype(bytes)> a0, a1, a2, b0, b1, b2;
      hn::LoadInterleaved3(bytes, above + 6 * x, a0, a1, a2);
      hn::LoadInterleaved3(bytes, below + 6 * x, b0, b1, b2);
      hn::StoreInterleaved3(mean(a0, b0), mean(a1, b1), mean(a2, b2), f, to + 3 * x);
    }
    for (; x < width; ++x) {
      const int left = 3 * std::min(2 * x, source_width - 1);
      const int right = 3 * std::min(2 * x + 1, source_width - 1);
      for (int c = 0; c < 3; ++c)
        to[3 * x + c] = 0.25f * static_cast<float>(above[left + c] + above[right + c] +
                                                   below[left + c] + below[right + c]);
    }
  }
}

}  // namespace nmrf::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nmrf::kernels {
namespace {

HWY_EXPORT(ResampleRows);
HWY_EXPORT(HalveToFloat);

// In OpenCV's order of operations, which decides where a product is nearly an integer.
int nearest(int at, int source, int result) {
  const double step = 1.0 / (static_cast<double>(result) / source);
  return std::min(static_cast<int>(at * step), source - 1);
}

// The weights of OpenCV: multiples of 1/2048, so that sums along a row are exact.
void bicubic_weights(float x, float* weights) {
  constexpr float a = -0.75f, kUnits = 2048;
  weights[0] = ((a * (x + 1) - 5 * a) * (x + 1) + 8 * a) * (x + 1) - 4 * a;
  weights[1] = ((a + 2) * x - (a + 3)) * x * x + 1;
  weights[2] = ((a + 2) * (1 - x) - (a + 3)) * (1 - x) * (1 - x) + 1;
  weights[3] = 1 - weights[0] - weights[1] - weights[2];
  for (int t = 0; t < 4; ++t) weights[t] = std::nearbyint(weights[t] * kUnits) / kUnits;
}

}  // namespace

void ResampleAxis::prepare(Resampling method, int source, int result) {
  const double scale = static_cast<double>(source) / result;
  const bool area = method == Resampling::kArea;
  const int widest = source % result == 0 ? source / result : static_cast<int>(scale) + 2;
  taps = std::min(source, area ? widest : 4);
  first.resize(static_cast<std::size_t>(result));
  weights.assign(static_cast<std::size_t>(result) * static_cast<std::size_t>(taps), 0.0f);
  for (int i = 0; i < result; ++i) {
    int& begin = first[static_cast<std::size_t>(i)];
    float* own = weights.data() + static_cast<std::ptrdiff_t>(i) * taps;
    auto add = [&](int at, double weight) {
      own[std::clamp(at, 0, source - 1) - begin] += static_cast<float>(weight);
    };
    if (area) {
      const double left = i * scale, right = std::min<double>(left + scale, source);
      begin = std::clamp(static_cast<int>(left), 0, source - taps);
      // Slivers are rounding errors of the products above.
      for (int at = static_cast<int>(left); at < right; ++at)
        if (const double part = std::min<double>(right, at + 1) - std::max<double>(left, at);
            part > 1e-3)
          add(at, part / (right - left));
    } else {
      const auto centre = static_cast<float>((i + 0.5) * scale - 0.5);
      const int at = static_cast<int>(std::floor(centre));
      float four[4];
      bicubic_weights(centre - static_cast<float>(at), four);
      begin = std::clamp(at - 1, 0, source - taps);
      for (int t = 0; t < 4; ++t) add(at - 1 + t, four[t]);
    }
  }
}

void Resampler::prepare(Resampling method, int source_width, int source_height, int width,
                        int height) {
  if (method == method_ && source_width == source_width_ && source_height == source_height_ &&
      width == width_ && height == height_)
    return;
  method_ = method;
  source_width_ = source_width;
  source_height_ = source_height;
  width_ = width;
  height_ = height;
  columns_.prepare(method, source_width, width);
  rows_.prepare(method, source_height, height);
  // Halving rounds half a grey level up, as OpenCV does; all else rounds it to even.
  const bool halves =
      method == Resampling::kArea && source_width == 2 * width && source_height == 2 * height;
  bias_ = halves ? 0.125f : 0.0f;
}

std::size_t Resampler::work_floats() const {
  return padded(static_cast<std::size_t>(source_width_)) +
         static_cast<std::size_t>(rows_.taps) * padded(static_cast<std::size_t>(width_));
}

void Resampler::rows(const std::uint8_t* source, std::ptrdiff_t source_stride, std::uint8_t* result,
                     std::ptrdiff_t stride, int begin, int end, float* work) const {
  const RowsJob job{columns_, rows_, static_cast<std::size_t>(source_width_),
                    static_cast<std::size_t>(width_), bias_};
  HWY_DYNAMIC_DISPATCH(ResampleRows)
  (job, source, source_stride, result, stride, begin, end, work);
}

void NearestResampler::prepare(int source_width, int source_height, int width, int height) {
  source_width_ = source_width;
  source_height_ = source_height;
  width_ = width;
  height_ = height;
  columns_.resize(static_cast<std::size_t>(width));
  for (int x = 0; x < width; ++x)
    columns_[static_cast<std::size_t>(x)] = nearest(x, source_width, width);
}

void NearestResampler::rows(const float* source, float factor, float* result, int begin,
                            int end) const {
  for (int y = begin; y < end; ++y) {
    const float* from =
        source + static_cast<std::ptrdiff_t>(nearest(y, source_height_, height_)) * source_width_;
    float* to = result + static_cast<std::ptrdiff_t>(y) * width_;
    for (int x = 0; x < width_; ++x) to[x] = factor * from[columns_[static_cast<std::size_t>(x)]];
  }
}

void halve_to_float(const std::uint8_t* source, std::ptrdiff_t source_stride, int source_width,
                    int source_height, float* result, int width, int begin, int end) {
  HWY_DYNAMIC_DISPATCH(HalveToFloat)
  (source, source_stride, source_width, source_height, result, width, begin, end);
}

}  // namespace nmrf::kernels
#endif
