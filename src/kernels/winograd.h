// 3x3 convolutions of stride 1 by Winograd's F(4x4, 3x3): a quarter of the products of the direct
// form. Maps have their channels last.
#pragma once

#include <cstddef>

#include "kernels/maps.h"

namespace nmrf::conv {

// A convolution and how it is cut: a tile makes 4 x 4 pixels, a run of tiles in reading order goes
// through the cache at once and is the unit of work.
struct Winograd {
  Winograd(std::size_t batch, std::size_t height, std::size_t width, std::size_t in,
           std::size_t out, bool for_weights = false);

  std::size_t batch, height, width, in, out;
  std::size_t tiles_y, tiles_x;
  std::size_t run;  // tiles of a unit; the last one of a map may have fewer

  std::size_t units_each() const { return (tiles_y * tiles_x + run - 1) / run; }  // of one map
  std::size_t units() const { return batch * units_each(); }
  std::size_t unit_pixels(std::size_t unit) const;
};

constexpr std::size_t kWinogradPoints = 36;

// Floats of transformed weights.
inline std::size_t winograd_weights_size(std::size_t in, std::size_t out) {
  return kWinogradPoints * in * tokens::padded(out);
}
// w: [out, in, 3, 3]; those of the input channels begin to end. They serve the instruction set in
// use when they were packed.
void winograd_weights(const float* w, std::size_t out, std::size_t in, float* packed,
                      std::size_t begin, std::size_t end);
// The same of the convolution that takes gradients [.., out] back to [.., in], whose inputs are
// `out`.
void winograd_weights_backward(const float* w, std::size_t out, std::size_t in, float* packed,
                               std::size_t begin, std::size_t end);

// What is done with the results of a convolution.
struct WinogradResult {
  float* data = nullptr;       // [batch, height, width, out]
  float* moments = nullptr;    // of the results, a set a unit; or null
  const float* add = nullptr;  // added, where gate > 0 if there is a gate; or null
  const float* gate = nullptr;
  // With `before`: the result is the gradient of relu(norm(before)). It is cut where that is zero,
  // and its sums S, S (norm(before)) are left in `sums`, laid out as moments.
  Source before = {};
  float* sums = nullptr;
};

// Units begin .. end of the convolution.
void winograd_forward(const Winograd& op, const Source& x, const float* packed,
                      const WinogradResult& result, std::size_t begin, std::size_t end);

// Gradient of the weights in Winograd's domain, [36, in, padded(out)], added to `sums`.
inline std::size_t winograd_sums_size(std::size_t in, std::size_t out) {
  return kWinogradPoints * in * tokens::padded(out);
}
void winograd_weights_gradient(const Winograd& op, const Source& x, const float* dy, float* sums,
                               std::size_t begin, std::size_t end);
// The sum of `sets` such sums as the gradient [out, in, 3, 3] of the weights.
void winograd_finish_gradient(const float* sums, std::size_t sets, std::size_t out, std::size_t in,
                              float* dw);

}  // namespace nmrf::conv
