// Images seen by cameras that are shifted or turned.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "kernels/resample.h"
#include "matching/pictures.h"
#include "nmrf/image.h"

namespace nmrf::test {

struct Point {
  double x, y;
};

// Pixel (x, y) of the result is what the image has at source(x, y): bilinear, borders replicated.
// image: 8-bit, three channels.
template <class Source>
Image warped(const Image& image, int width, int height, const Source& source) {
  Image result(width, height, 3, 8, image.order());
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const Point at = source(x, y);
      const double u = std::clamp(at.x, 0.0, image.width() - 1.0);
      const double v = std::clamp(at.y, 0.0, image.height() - 1.0);
      const int left = static_cast<int>(u), top = static_cast<int>(v);
      const int right = std::min(left + 1, image.width() - 1);
      const int bottom = std::min(top + 1, image.height() - 1);
      for (int c = 0; c < 3; ++c) {
        auto across = [&](int row) {
          const std::uint8_t* p = image.row(row);
          return p[3 * left + c] + (u - left) * (p[3 * right + c] - p[3 * left + c]);
        };
        const double value = across(top) + (v - top) * (across(bottom) - across(top));
        result.row(y)[3 * x + c] = static_cast<std::uint8_t>(std::lround(value));
      }
    }
  return result;
}

inline Image moved(const Image& image, double down) {
  return warped(image, image.width(), image.height(), [&](int x, int y) {
    return Point{static_cast<double>(x), y - down};
  });
}

// About the middle.
inline Image turned(const Image& image, double degrees) {
  const double c = std::cos(degrees * std::numbers::pi / 180);
  const double s = std::sin(degrees * std::numbers::pi / 180);
  const double mx = image.width() / 2.0, my = image.height() / 2.0;
  return warped(image, image.width(), image.height(), [&](int x, int y) {
    return Point{mx + c * (x - mx) - s * (y - my), my + s * (x - mx) + c * (y - my)};
  });
}

struct ImagePair {
  Image left, right;
};

// A slanted plane with random texture: disparity grows from top to bottom.
inline ImagePair slanted_plane(int width, int height, double near) {
  const Image texture = noise_image(width / 3 + 60, height / 3 + 2, 21);
  Image large(3 * texture.width(), 3 * texture.height());
  kernels::Resampler resampler;
  resampler.prepare(kernels::Resampling::kBicubic, texture.width(), texture.height(), large.width(),
                    large.height());
  std::vector<float> work(resampler.work_floats());
  resampler.rows(texture.data(), static_cast<std::ptrdiff_t>(texture.row_bytes()), large.data(),
                 static_cast<std::ptrdiff_t>(large.row_bytes()), 0, large.height(), work.data());
  auto seen = [&](double nearness) {
    return warped(large, width, height, [&](int x, int y) {
      return Point{x + nearness * (0.2 + 0.8 * y / height), static_cast<double>(y)};
    });
  };
  return {seen(0), seen(near)};
}

}  // namespace nmrf::test
