// What the token kernels and their callers agree on.
#pragma once

#include <cstddef>

namespace nmrf::tokens {

// Tokens a tile may hold.
constexpr std::size_t kMostRows = 48;
// Rows of packed biases and of accumulated gradients are padded to this many floats: the widest
// vector.
constexpr std::size_t kPad = 16;

inline std::size_t padded(std::size_t columns) { return (columns + kPad - 1) / kPad * kPad; }

// Row stride of a tile in scratch memory: an odd number of cache lines, so that the rows of a tile
// do not compete for the same few sets of a cache.
inline std::size_t tile_stride(std::size_t columns) {
  const std::size_t lines = padded(columns) / kPad;
  return (lines + 1 - lines % 2) * kPad;
}

// Tokens in memory, a row each, `stride` floats apart.
struct InputRows {
  const float* data = nullptr;
  std::size_t stride = 0;
};
struct OutputRows {
  float* data = nullptr;
  std::size_t stride = 0;
};

}  // namespace nmrf::tokens
