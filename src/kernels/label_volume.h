// Correlation volume, its score along the planes and the label seeds, a row of pixels at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/label_feature.h"

namespace nmrf::kernels {

constexpr std::int64_t kScoreTaps = 5;  // of each convolution along the planes
constexpr std::int64_t kScorePad = 8;   // columns of the last convolution's weights, taps first

struct VolumeShape {
  std::int64_t batch = 0, height = 0, width = 0;
  std::int64_t channels = 0, groups = 0, planes = 0;
  std::int64_t hidden1 = 0, hidden2 = 0;  // of the score
  std::int64_t labels = 0;

  std::int64_t rows() const { return batch * height; }
};

// The three convolutions, packed (ops/kernels/pack.h). With w: [out, in, 5] of a convolution:
struct ScoreWeights {
  // B[t * in + i, o] = w[o, i, t] of the first two, B[i, t] = w[0, i, t] of the last, kScorePad
  // wide.
  const float* forward[3] = {};
  const float* bias[2] = {};  // padded
  float last_bias = 0;
  // B[t * out + o, i] = w[o, i, 4 - t]; for the backward pass.
  const float* backward[3] = {};
};

struct VolumeOut {
  float* volume = nullptr;        // [B, h, w, planes, groups]; null: not kept
  float* cost = nullptr;          // [B, h, w, planes]
  float* prob = nullptr;          // [B, h, w, planes]
  std::int64_t* seeds = nullptr;  // [B, h, w, k]
};

// Rows [begin, end) of the B * h rows. Planes that look beyond the left border correlate to zero.
void label_volume_forward(const VolumeShape& shape, const PixelMap& left, const PixelMap& right,
                          const ScoreWeights& weights, const VolumeOut& out, std::int64_t begin,
                          std::int64_t end);

// Where the gradients of the score lie in a block of `total` floats: weight[n] is [out, 5 * in],
// channels running fastest, with rows padded to 16 floats.
struct ScoreSums {
  explicit ScoreSums(const VolumeShape& shape);
  std::size_t weight[3], bias[3], total;
};

// Gradients of the maps and the score from those of cost and volume (either may be null). Hidden
// layers are computed again from the volume. Null outputs are left out; sums are added to.
void label_volume_backward(const VolumeShape& shape, const PixelMap& left, const PixelMap& right,
                           const ScoreWeights& weights, const float* volume, const float* d_cost,
                           const float* d_volume, const MutablePixelMap& d_left,
                           const MutablePixelMap& d_right, float* sums, std::int64_t begin,
                           std::int64_t end);

// The volume around the seeds: out[B, h, w, k, groups * (2 radius + 1)], planes clamped. Pixels
// [begin, end) of B * h * w.
void volume_lookup(const VolumeShape& shape, const float* volume, const std::int64_t* seeds,
                   std::int64_t radius, float* out, std::int64_t begin, std::int64_t end);
// d_volume of these pixels is overwritten.
void volume_lookup_backward(const VolumeShape& shape, const float* above, const std::int64_t* seeds,
                            std::int64_t radius, float* d_volume, std::int64_t begin,
                            std::int64_t end);

}  // namespace nmrf::kernels
