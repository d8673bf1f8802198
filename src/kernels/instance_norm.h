// Instance norm with ReLU and the residual addition, and the way back. Maps have their channels
// last.
#pragma once

#include <cstddef>

#include "kernels/maps.h"

namespace nmrf::conv {

// A batch of maps and how it is cut: the unit of work is some pixels of one map.
struct Pixels {
  std::size_t batch, pixels, channels;

  static constexpr std::size_t kUnit = 256;
  std::size_t units_each() const { return (pixels + kUnit - 1) / kUnit; }
  std::size_t units() const { return batch * units_each(); }
};

// The units of one map, `counts` pixels each, merged to mean and 1 / sqrt(variance + 1e-5).
void merge_moments(const float* moments, const std::size_t* counts, std::size_t units,
                   std::size_t channels, float* mean, float* scale);

// out = relu(norm(y)); y may be out.
void activate(const Pixels& size, const Source& y, float* out, std::size_t begin, std::size_t end);

// out = relu(shortcut + relu(norm(y))). A shortcut with a norm is normalised, without ReLU. y may
// be out.
void add_residual(const Pixels& size, const Source& y, const Source& shortcut, float* out,
                  std::size_t begin, std::size_t end);

// Backward of z = relu(norm(y)) or, with no relu, of norm(y). `gate`, unless null: dz counts only
// where gate > 0.
struct NormBackward {
  const float* dz = nullptr;
  const float* gate = nullptr;
  Source y = {};
  bool relu = true;
};
// Sums of the masked gradient and of it times norm(y), a set a unit as moments are.
void norm_backward_sums(const Pixels& size, const NormBackward& in, float* sums, std::size_t begin,
                        std::size_t end);
// The sums of one map's units, in order, over its pixels: two rows of `channels` means.
void merge_sums(const float* sums, std::size_t units, std::size_t channels, std::size_t pixels,
                float* means);
// dy = scale (g - mean g - norm(y) mean(g norm(y))), g the masked gradient; means: [batch, 2,
// channels]. dz may be dy.
void norm_backward(const Pixels& size, const NormBackward& in, const float* means, float* dy,
                   std::size_t begin, std::size_t end);

// sums[unit, c] = the sum of channel c over a unit's pixels; without padding.
void channel_sums(const Pixels& size, const float* x, float* sums, std::size_t begin,
                  std::size_t end);

}  // namespace nmrf::conv
