// What the convolution kernels and their callers agree on: maps with the channels last, read as
// they are or through an instance norm.
#pragma once

#include <cstddef>

#include "kernels/tiles.h"

namespace nmrf::conv {

// Instance norm: (x - mean) * scale, both [batch, channels].
struct Norm {
  const float* mean = nullptr;
  const float* scale = nullptr;
};

// A batch of maps [batch, height, width, channels] without gaps. With a norm, relu(norm(x)) is read
// in place of x; what lies outside the map is zero either way.
struct Source {
  const float* data = nullptr;
  Norm norm = {};
};

// Mean and sum of squared distances from it, a set a unit of work: [units, 2, padded(channels)].
// Units are merged in their order, so that the result does not depend on the threads.
inline std::size_t moments_size(std::size_t channels) { return 2 * tokens::padded(channels); }

}  // namespace nmrf::conv
