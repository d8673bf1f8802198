// Images and maps of the tests of this folder.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "core/rng.h"
#include "nmrf/image.h"
#include "nmrf/map.h"

namespace nmrf::test {

using Colour = std::array<std::uint8_t, 3>;

// Columns `left` to `right` (not included) of every row.
inline void paint(Image& image, int left, int right, Colour colour) {
  for (int y = 0; y < image.height(); ++y)
    for (int x = left; x < right; ++x)
      std::copy(colour.begin(), colour.end(), image.row(y) + 3 * x);
}

template <class T>
void paint(Map<T>& map, int left, int right, T value) {
  for (int y = 0; y < map.height(); ++y) std::fill(map.row(y) + left, map.row(y) + right, value);
}

inline Image plain_image(int width, int height, Colour colour) {
  Image image(width, height);
  paint(image, 0, width, colour);
  return image;
}

// Noise between two grey levels, the second not included.
inline Image noise_image(int width, int height, std::uint64_t seed, int low = 0, int high = 256) {
  Rng rng(seed);
  Image image(width, height);
  std::generate_n(image.data(), image.row_bytes() * static_cast<std::size_t>(height),
                  [&] { return static_cast<std::uint8_t>(rng.integer(low, high - 1)); });
  return image;
}

inline FloatMap noise_map(int width, int height, std::uint64_t seed, double low, double high) {
  Rng rng(seed);
  FloatMap map(width, height);
  for (float& value : map) value = static_cast<float>(rng.uniform(low, high));
  return map;
}

// Equal bit by bit; NaN equals itself.
inline bool same(const FloatMap& a, const FloatMap& b) {
  return a.same_size(b) && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace nmrf::test
