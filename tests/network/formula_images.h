// The textured image pair of the formula case: 8-bit RGB, the same on every machine.
#pragma once

#include <utility>

#include "network/formula.h"
#include "nmrf/image.h"

namespace nmrf::test {

inline std::pair<Image, Image> formula_images(int width, int height) {
  auto hash = [](std::uint64_t a, std::uint64_t b, std::uint64_t s) {
    return formula_mix((a * 73856093ull) ^ (b * 19349663ull) ^ s) >> 56;
  };
  auto texture = [&](std::uint64_t x, std::uint64_t y, std::uint64_t c) {
    return (2 * hash(x >> 3, y >> 3, c) + hash(x >> 1, y >> 1, c + 8) + hash(x, y, c + 16)) >> 2;
  };
  Image left(width, height), right(width, height);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c) {
        const int shift = 8 + 8 * ((y / 16) % 3);
        auto at = [&](int column) {
          return static_cast<std::uint8_t>(texture(static_cast<std::uint64_t>(column),
                                                   static_cast<std::uint64_t>(y),
                                                   static_cast<std::uint64_t>(c)));
        };
        left.row(y)[3 * x + c] = at(x);
        right.row(y)[3 * x + c] = at(x + shift);
      }
  return {std::move(left), std::move(right)};
}

}  // namespace nmrf::test
