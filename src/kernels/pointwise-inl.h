// Normalisation, GELU and small sums over the rows of a tile, for one instruction set.
#if defined(NMRF_OPS_KERNELS_POINTWISE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NMRF_OPS_KERNELS_POINTWISE_INL_H_
#undef NMRF_OPS_KERNELS_POINTWISE_INL_H_
#else
#define NMRF_OPS_KERNELS_POINTWISE_INL_H_
#endif

#include <cmath>
#include <cstring>

#include "kernels/gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nmrf::tokens::HWY_NAMESPACE {

HWY_INLINE float sum_lanes(Vector v) { return hn::GetLane(hn::SumOfLanes(Floats(), v)); }

HWY_INLINE void copy_rows(const float* from, std::size_t from_stride, std::size_t rows,
                          std::size_t columns, float* to, std::size_t to_stride) {
  for (std::size_t r = 0; r < rows; ++r)
    std::memcpy(to + r * to_stride, from + r * from_stride, columns * sizeof(float));
}

// y = (x - mean) / deviation * weight + bias; mean and 1 / deviation of each row are kept.
HWY_INLINE void normalise_rows(const float* x, std::size_t x_stride, std::size_t rows,
                               std::size_t channels, const float* weight, const float* bias,
                               float eps, float* y, std::size_t y_stride, float* means,
                               float* scales) {
  const Floats d;
  const std::size_t whole = channels / kLanes * kLanes;
  const float share = 1.0f / static_cast<float>(channels);
  for (std::size_t r = 0; r < rows; ++r, x += x_stride, y += y_stride) {
    Vector sum = hn::Zero(d);
    for (std::size_t c = 0; c < whole; c += kLanes) sum = hn::Add(sum, hn::LoadU(d, x + c));
    float total = sum_lanes(sum);
    for (std::size_t c = whole; c < channels; ++c) total += x[c];
    const float mean = total * share;
    const Vector centre = hn::Set(d, mean);
    Vector squares = hn::Zero(d);
    for (std::size_t c = 0; c < whole; c += kLanes) {
      const Vector off = hn::Sub(hn::LoadU(d, x + c), centre);
      squares = hn::MulAdd(off, off, squares);
    }
    float spread = sum_lanes(squares);
    for (std::size_t c = whole; c < channels; ++c) spread += (x[c] - mean) * (x[c] - mean);
    const float scale = 1.0f / std::sqrt(spread * share + eps);
    const Vector by = hn::Set(d, scale);
    for (std::size_t c = 0; c < whole; c += kLanes) {
      const Vector hat = hn::Mul(hn::Sub(hn::LoadU(d, x + c), centre), by);
      hn::StoreU(hn::MulAdd(hat, hn::LoadU(d, weight + c), hn::LoadU(d, bias + c)), d, y + c);
    }
    for (std::size_t c = whole; c < channels; ++c)
      y[c] = (x[c] - mean) * scale * weight[c] + bias[c];
    means[r] = mean;
    scales[r] = scale;
  }
}

// Backward of normalise_rows: dx = (add +) gradient of the input; d_weight and d_bias, unless null,
// are added to. dy may be dx.
HWY_INLINE void normalise_rows_backward(const float* x, std::size_t x_stride, const float* dy,
                                        std::size_t dy_stride, std::size_t rows,
                                        std::size_t channels, const float* weight,
                                        const float* means, const float* scales, const float* add,
                                        std::size_t add_stride, float* dx, std::size_t dx_stride,
                                        float* d_weight, float* d_bias) {
  const Floats d;
  const std::size_t whole = channels / kLanes * kLanes;
  const float share = 1.0f / static_cast<float>(channels);
  for (std::size_t r = 0; r < rows; ++r, x += x_stride, dy += dy_stride) {
    const float mean = means[r], scale = scales[r];
    const Vector centre = hn::Set(d, mean), by = hn::Set(d, scale);
    Vector sum = hn::Zero(d), along = hn::Zero(d);
    for (std::size_t c = 0; c < whole; c += kLanes) {
      const Vector hat = hn::Mul(hn::Sub(hn::LoadU(d, x + c), centre), by);
      const Vector slope = hn::LoadU(d, dy + c);
      const Vector weighted = hn::Mul(slope, hn::LoadU(d, weight + c));
      sum = hn::Add(sum, weighted);
      along = hn::MulAdd(weighted, hat, along);
      if (d_weight) {
        hn::StoreU(hn::MulAdd(slope, hat, hn::LoadU(d, d_weight + c)), d, d_weight + c);
        hn::StoreU(hn::Add(slope, hn::LoadU(d, d_bias + c)), d, d_bias + c);
      }
    }
    float total = sum_lanes(sum), total_along = sum_lanes(along);
    for (std::size_t c = whole; c < channels; ++c) {
      const float hat = (x[c] - mean) * scale;
      total += dy[c] * weight[c];
      total_along += dy[c] * weight[c] * hat;
      if (d_weight) {
        d_weight[c] += dy[c] * hat;
        d_bias[c] += dy[c];
      }
    }
    if (!dx) continue;
    const float shift = total * share, tilt = total_along * share;
    const Vector shifts = hn::Set(d, shift), tilts = hn::Set(d, tilt);
    for (std::size_t c = 0; c < whole; c += kLanes) {
      const Vector hat = hn::Mul(hn::Sub(hn::LoadU(d, x + c), centre), by);
      const Vector weighted = hn::Mul(hn::LoadU(d, dy + c), hn::LoadU(d, weight + c));
      Vector value = hn::Mul(by, hn::NegMulAdd(hat, tilts, hn::Sub(weighted, shifts)));
      if (add) value = hn::Add(value, hn::LoadU(d, add + r * add_stride + c));
      hn::StoreU(value, d, dx + r * dx_stride + c);
    }
    for (std::size_t c = whole; c < channels; ++c) {
      const float hat = (x[c] - mean) * scale;
      const float value = scale * (dy[c] * weight[c] - shift - hat * tilt);
      dx[r * dx_stride + c] = add ? value + add[r * add_stride + c] : value;
    }
  }
}

// The normal distribution function P(x) and the slope of GELU, x P(x), are both 0.5 + x f(x^2): f
// as a polynomial of u = 2 (x / limit)^2 - 1, fitted for the least absolute error of the whole over
// [-limit, limit] (2e-8; with float rounding 1.1e-7 and 2.2e-7); beyond that both are constant in
// float.
constexpr float kNormalLimit = 5.25f;
constexpr float kNormal[] = {
    1.346593499e-01f,  -6.712681800e-02f, 4.964578524e-02f,  -3.976341337e-02f, 3.203143924e-02f,
    -2.504193224e-02f, 1.853864454e-02f,  -1.277525350e-02f, 8.417883888e-03f,  -5.448513199e-03f,
    2.892341232e-03f,  -1.039540279e-03f, 6.647477276e-04f,  -6.565819494e-04f, 2.399454243e-04f};
constexpr float kSlopeLimit = 5.7f;
constexpr float kSlope[] = {
    1.241653189e-01f,  -6.292594224e-02f, 5.013762042e-02f,  -4.845217243e-02f, 5.331778899e-02f,
    -6.136230752e-02f, 6.833998859e-02f,  -7.131679356e-02f, 6.902843714e-02f,  -5.848800391e-02f,
    4.209680483e-02f,  -3.282967582e-02f, 2.907153219e-02f,  -1.523215417e-02f, 1.324665267e-03f,
    -2.349581569e-03f, 5.319750868e-03f,  -2.125951694e-03f};

template <int kTerms>
HWY_INLINE Vector half_plus_odd(Vector x, float limit, const float (&terms)[kTerms]) {
  const Floats d;
  const Vector most = hn::Set(d, limit);
  const Vector t = hn::Max(hn::Min(x, most), hn::Neg(most));
  const Vector u = hn::MulAdd(hn::Mul(t, hn::Set(d, 2.0f / (limit * limit))), t, hn::Set(d, -1.0f));
  Vector f = hn::Set(d, terms[kTerms - 1]);
#pragma GCC unroll 32
  for (int i = kTerms - 2; i >= 0; --i) f = hn::MulAdd(f, u, hn::Set(d, terms[i]));
  return hn::MulAdd(t, f, hn::Set(d, 0.5f));
}

HWY_INLINE Vector gelu(Vector x) { return hn::Mul(x, half_plus_odd(x, kNormalLimit, kNormal)); }

// In place, over whole vectors: `columns` is rounded up, rows must reach that far.
HWY_INLINE void gelu_rows(float* x, std::size_t stride, std::size_t rows, std::size_t columns) {
  const Floats d;
  for (std::size_t r = 0; r < rows; ++r, x += stride)
    for (std::size_t c = 0; c < columns; c += kLanes)
      hn::StoreU(gelu(hn::LoadU(d, x + c)), d, x + c);
}

// The same, with the slope of GELU there.
HWY_INLINE void gelu_rows_with_slope(float* x, float* slope, std::size_t stride, std::size_t rows,
                                     std::size_t columns) {
  const Floats d;
  for (std::size_t r = 0; r < rows; ++r, x += stride, slope += stride)
    for (std::size_t c = 0; c < columns; c += kLanes) {
      const Vector v = hn::LoadU(d, x + c);
      hn::StoreU(half_plus_odd(v, kSlopeLimit, kSlope), d, slope + c);
      hn::StoreU(gelu(v), d, x + c);
    }
}

// gradient *= slope
HWY_INLINE void multiply_rows(float* gradient, const float* slope, std::size_t stride,
                              std::size_t rows, std::size_t columns) {
  const Floats d;
  for (std::size_t r = 0; r < rows; ++r, gradient += stride, slope += stride)
    for (std::size_t c = 0; c < columns; c += kLanes)
      hn::StoreU(hn::Mul(hn::LoadU(d, gradient + c), hn::LoadU(d, slope + c)), d, gradient + c);
}

// gradient = 0 where a ReLU gave nothing
HWY_INLINE void cut_rows(float* gradient, const float* activation, std::size_t stride,
                         std::size_t rows, std::size_t columns) {
  const Floats d;
  const Vector zero = hn::Zero(d);
  for (std::size_t r = 0; r < rows; ++r, gradient += stride, activation += stride)
    for (std::size_t c = 0; c < columns; c += kLanes)
      hn::StoreU(hn::IfThenElseZero(hn::Gt(hn::LoadU(d, activation + c), zero),
                                    hn::LoadU(d, gradient + c)),
                 d, gradient + c);
}

// sums[c] += column c of x
HWY_INLINE void add_column_sums(const float* x, std::size_t stride, std::size_t rows,
                                std::size_t columns, float* sums) {
  const Floats d;
  std::size_t c = 0;
  for (; c + 4 * kLanes <= columns; c += 4 * kLanes) {
    Vector s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    const float* at = x + c;
    for (std::size_t r = 0; r < rows; ++r, at += stride) {
      s0 = hn::Add(s0, hn::LoadU(d, at));
      s1 = hn::Add(s1, hn::LoadU(d, at + kLanes));
      s2 = hn::Add(s2, hn::LoadU(d, at + 2 * kLanes));
      s3 = hn::Add(s3, hn::LoadU(d, at + 3 * kLanes));
    }
    hn::StoreU(hn::Add(s0, hn::LoadU(d, sums + c)), d, sums + c);
    hn::StoreU(hn::Add(s1, hn::LoadU(d, sums + c + kLanes)), d, sums + c + kLanes);
    hn::StoreU(hn::Add(s2, hn::LoadU(d, sums + c + 2 * kLanes)), d, sums + c + 2 * kLanes);
    hn::StoreU(hn::Add(s3, hn::LoadU(d, sums + c + 3 * kLanes)), d, sums + c + 3 * kLanes);
  }
  for (; c < columns; ++c) {
    float sum = 0;
    for (std::size_t r = 0; r < rows; ++r) sum += x[r * stride + c];
    sums[c] += sum;
  }
}

// y[i] = the sum of rows i * labels .. of x
HWY_INLINE void sum_labels(const float* x, std::size_t x_stride, std::size_t pixels,
                           std::size_t labels, std::size_t columns, float* y,
                           std::size_t y_stride) {
  const Floats d;
  for (std::size_t i = 0; i < pixels; ++i, y += y_stride) {
    std::size_t c = 0;
    for (; c + kLanes <= columns; c += kLanes) {
      Vector sum = hn::Zero(d);
      for (std::size_t j = 0; j < labels; ++j)
        sum = hn::Add(sum, hn::LoadU(d, x + (i * labels + j) * x_stride + c));
      hn::StoreU(sum, d, y + c);
    }
    for (; c < columns; ++c) {
      float sum = 0;
      for (std::size_t j = 0; j < labels; ++j) sum += x[(i * labels + j) * x_stride + c];
      y[c] = sum;
    }
  }
}

}  // namespace nmrf::tokens::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
