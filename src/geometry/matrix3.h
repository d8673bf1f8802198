// Rotations of three dimensions.
#pragma once

#include <algorithm>
#include <cmath>

#include "nmrf/rectify.h"

namespace nmrf {

inline Matrix3 product(const Matrix3& a, const Matrix3& b) {
  Matrix3 result{};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      for (std::size_t k = 0; k < 3; ++k) result[3 * i + j] += a[3 * i + k] * b[3 * k + j];
  return result;
}

inline Vector3 product(const Matrix3& a, const Vector3& v) {
  Vector3 result{};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t k = 0; k < 3; ++k) result[i] += a[3 * i + k] * v[k];
  return result;
}

inline Matrix3 transposed(const Matrix3& a) {
  return {a[0], a[3], a[6], a[1], a[4], a[7], a[2], a[5], a[8]};
}

inline double length(const Vector3& v) {
  return std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
}

// The axis times the angle in radians, and back (Rodrigues). Angles below pi.
inline Vector3 rotation_vector(const Matrix3& r) {
  const Vector3 axis{r[7] - r[5], r[2] - r[6], r[3] - r[1]};
  const double sine = length(axis) / 2, cosine = (r[0] + r[4] + r[8] - 1) / 2;
  const double angle = std::atan2(sine, cosine);
  const double factor = sine > 1e-9 ? angle / (2 * sine) : 0.5;
  return {axis[0] * factor, axis[1] * factor, axis[2] * factor};
}

inline Matrix3 rotation_matrix(const Vector3& v) {
  const double angle = length(v);
  const double a = angle > 1e-9 ? std::sin(angle) / angle : 1.0;
  const double b = angle > 1e-9 ? (1 - std::cos(angle)) / (angle * angle) : 0.5;
  const auto [x, y, z] = v;
  return {1 - b * (y * y + z * z), b * x * y - a * z,       b * x * z + a * y,
          b * x * y + a * z,       1 - b * (x * x + z * z), b * y * z - a * x,
          b * x * z - a * y,       b * y * z + a * x,       1 - b * (x * x + y * y)};
}

}  // namespace nmrf
