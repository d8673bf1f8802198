// The transforms of Winograd's F(4x4, 3x3) on vectors of channels, for one instruction set.
//
// A row of 4 results is a polynomial product evaluated at 0, +-a, +-b and infinity. a = sqrt(1/2)
// and b = sqrt(2) keep the factors near 1: the rounding error is about a third of that with the
// usual 1 and 2.
#if defined(NMRF_OPS_KERNELS_WINOGRAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NMRF_OPS_KERNELS_WINOGRAD_INL_H_
#undef NMRF_OPS_KERNELS_WINOGRAD_INL_H_
#else
#define NMRF_OPS_KERNELS_WINOGRAD_INL_H_
#endif

#include "kernels/maps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nmrf::conv::HWY_NAMESPACE {

constexpr float kA = 0.70710678118654752f, kB = 1.41421356237309505f;
constexpr float kA2 = 0.5f, kB2 = 2.0f;  // squares; their product is 1, their sum 2.5

HWY_INLINE Vector times(float factor, Vector x) { return hn::Mul(hn::Set(Floats(), factor), x); }
// x + factor * y, x - factor * y
HWY_INLINE Vector plus(Vector x, float factor, Vector y) {
  return hn::MulAdd(hn::Set(Floats(), factor), y, x);
}
HWY_INLINE Vector minus(Vector x, float factor, Vector y) {
  return hn::NegMulAdd(hn::Set(Floats(), factor), y, x);
}

// Six inputs in place: B^T d.
HWY_INLINE void transform_input(Vector& d0, Vector& d1, Vector& d2, Vector& d3, Vector& d4,
                                Vector& d5) {
  const Vector even_a = minus(d4, kB2, d2), odd_a = minus(d3, kB2, d1);
  const Vector even_b = minus(d4, kA2, d2), odd_b = minus(d3, kA2, d1);
  d0 = minus(hn::Add(d0, d4), kA2 + kB2, d2);
  d5 = minus(hn::Add(d1, d5), kA2 + kB2, d3);
  d1 = plus(even_a, kA, odd_a);
  d2 = minus(even_a, kA, odd_a);
  d3 = plus(even_b, kB, odd_b);
  d4 = minus(even_b, kB, odd_b);
}

// Six products to four results: A^T m.
HWY_INLINE void transform_output(Vector m0, Vector m1, Vector m2, Vector m3, Vector m4, Vector m5,
                                 Vector& y0, Vector& y1, Vector& y2, Vector& y3) {
  const Vector sum_a = hn::Add(m1, m2), sum_b = hn::Add(m3, m4);
  const Vector off_a = times(kA, hn::Sub(m1, m2)), off_b = times(kB, hn::Sub(m3, m4));
  y0 = hn::Add(hn::Add(m0, sum_a), sum_b);
  y1 = hn::Add(off_a, off_b);
  y2 = plus(times(kA2, sum_a), kB2, sum_b);
  y3 = plus(plus(m5, kA2, off_a), kB2, off_b);
}

// Gradients of four results to those of six products: A g.
HWY_INLINE void transform_gradient(Vector g0, Vector g1, Vector g2, Vector g3, Vector& m0,
                                   Vector& m1, Vector& m2, Vector& m3, Vector& m4, Vector& m5) {
  const Vector even_a = plus(g0, kA2, g2), odd_a = plus(g1, kA2, g3);
  const Vector even_b = plus(g0, kB2, g2), odd_b = plus(g1, kB2, g3);
  m0 = g0;
  m1 = plus(even_a, kA, odd_a);
  m2 = minus(even_a, kA, odd_a);
  m3 = plus(even_b, kB, odd_b);
  m4 = minus(even_b, kB, odd_b);
  m5 = g3;
}

// Three weights to six: G w.
HWY_INLINE void transform_weights(Vector w0, Vector w1, Vector w2, Vector (&u)[6]) {
  constexpr float kFarA = -1.0f / 1.5f, kFarB = 1.0f / 6;  // 1 / products of distances of points
  const Vector even_a = times(kFarA, plus(w0, kA2, w2)), even_b = times(kFarB, plus(w0, kB2, w2));
  u[0] = w0;
  u[1] = plus(even_a, kFarA * kA, w1);
  u[2] = minus(even_a, kFarA * kA, w1);
  u[3] = plus(even_b, kFarB * kB, w1);
  u[4] = minus(even_b, kFarB * kB, w1);
  u[5] = w2;
}

// The transpose of it, for gradients: G^T u.
HWY_INLINE void gather_weights(const Vector (&u)[6], Vector& w0, Vector& w1, Vector& w2) {
  constexpr float kFarA = -1.0f / 1.5f, kFarB = 1.0f / 6;
  const Vector sum_a = times(kFarA, hn::Add(u[1], u[2])), sum_b = times(kFarB, hn::Add(u[3], u[4]));
  w0 = hn::Add(u[0], hn::Add(sum_a, sum_b));
  w1 = plus(times(kFarA * kA, hn::Sub(u[1], u[2])), kFarB * kB, hn::Sub(u[3], u[4]));
  w2 = plus(plus(u[5], kA2, sum_a), kB2, sum_b);
}

// Where a tile lies in its map: row and column of its first pixel, how many of a map's pixels it
// covers.
struct Tile {
  std::ptrdiff_t y, x;
  std::size_t rows, columns;
};

// The 6 x 6 pixels around a tile (from one above and left of it) to 36 products' factors, `step`
// floats apart.
template <bool kInside, class L, class A>
HWY_INLINE void input_tile(const float* map, std::size_t height, std::size_t width,
                           std::size_t channels, const Tile& tile, const L& lanes,
                           const A& activate, float* to, std::size_t step) {
  const Floats d;
  const auto row = static_cast<std::ptrdiff_t>(width * channels);
  const auto pixel = static_cast<std::ptrdiff_t>(channels);
  Vector v[6][6];
  const float* corner = map + (tile.y - 1) * row + (tile.x - 1) * pixel;
#pragma GCC unroll 6
  for (int i = 0; i < 6; ++i) {
    const std::ptrdiff_t y = tile.y - 1 + i;
    const bool row_inside = kInside || (y >= 0 && y < static_cast<std::ptrdiff_t>(height));
#pragma GCC unroll 6
    for (int j = 0; j < 6; ++j) {
      const std::ptrdiff_t x = tile.x - 1 + j;
      if (kInside || (row_inside && x >= 0 && x < static_cast<std::ptrdiff_t>(width)))
        v[i][j] = activate(lanes.load(corner + i * row + j * pixel));
      else
        v[i][j] = hn::Zero(d);
    }
    transform_input(v[i][0], v[i][1], v[i][2], v[i][3], v[i][4], v[i][5]);
  }
#pragma GCC unroll 6
  for (int j = 0; j < 6; ++j) {
    transform_input(v[0][j], v[1][j], v[2][j], v[3][j], v[4][j], v[5][j]);
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) hn::StoreU(v[i][j], d, to + (6 * i + j) * step);
  }
}

// The gradients of a tile's 4 x 4 pixels to those of its 36 products.
template <bool kInside, class L>
HWY_INLINE void gradient_tile(const float* map, std::size_t width, std::size_t channels,
                              const Tile& tile, const L& lanes, float* to, std::size_t step) {
  const Floats d;
  const std::size_t row = width * channels;
  const float* corner =
      map + static_cast<std::size_t>(tile.y) * row + static_cast<std::size_t>(tile.x) * channels;
  Vector v[4][6];
#pragma GCC unroll 4
  for (std::size_t i = 0; i < 4; ++i) {
    Vector g[4];
#pragma GCC unroll 4
    for (std::size_t j = 0; j < 4; ++j)
      g[j] = kInside || (i < tile.rows && j < tile.columns)
                 ? lanes.load(corner + i * row + j * channels)
                 : hn::Zero(d);
    transform_gradient(g[0], g[1], g[2], g[3], v[i][0], v[i][1], v[i][2], v[i][3], v[i][4],
                       v[i][5]);
  }
#pragma GCC unroll 6
  for (int j = 0; j < 6; ++j) {
    Vector m[6];
    transform_gradient(v[0][j], v[1][j], v[2][j], v[3][j], m[0], m[1], m[2], m[3], m[4], m[5]);
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) hn::StoreU(m[i], d, to + (6 * i + j) * step);
  }
}

// 36 products to a tile's 4 x 4 results; visit(i, j, value) for those that lie in the map.
template <class F>
HWY_INLINE void output_tile(const float* from, std::size_t step, const Tile& tile, const F& visit) {
  const Floats d;
  Vector v[4][6];
#pragma GCC unroll 6
  for (int j = 0; j < 6; ++j) {
    Vector m[6];
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) m[i] = hn::LoadU(d, from + (6 * i + j) * step);
    transform_output(m[0], m[1], m[2], m[3], m[4], m[5], v[0][j], v[1][j], v[2][j], v[3][j]);
  }
  const bool whole = tile.rows == 4 && tile.columns == 4;
#pragma GCC unroll 4
  for (std::size_t i = 0; i < 4; ++i) {
    Vector y[4];
    transform_output(v[i][0], v[i][1], v[i][2], v[i][3], v[i][4], v[i][5], y[0], y[1], y[2], y[3]);
#pragma GCC unroll 4
    for (std::size_t j = 0; j < 4; ++j)
      if (HWY_LIKELY(whole) || (i < tile.rows && j < tile.columns)) visit(i, j, y[j]);
  }
}

}  // namespace nmrf::conv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
