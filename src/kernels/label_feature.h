// The observed label feature: the right view read at the labels, correlated with the left one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nmrf::kernels {

// A map of which the channels of a pixel lie side by side; strides in floats.
struct PixelMap {
  const float* data = nullptr;
  std::int64_t batch = 0, row = 0, column = 0;
};
struct MutablePixelMap {
  float* data = nullptr;
  std::int64_t batch = 0, row = 0, column = 0;
};

struct FeatureShape {
  std::int64_t batch = 0, height = 0, width = 0, labels = 0;
  std::int64_t channels1 = 0;              // of gamma1; 0: none
  std::int64_t channels2 = 0, groups = 0;  // of gamma2; 0: none
  std::int64_t radius = 0;                 // columns correlated on either side of the label
  bool own = true;                         // the left gamma1 is part of the feature

  std::int64_t rows() const { return batch * height; }
  std::int64_t wide() const { return (own ? 2 : 1) * channels1 + (2 * radius + 1) * groups; }
};

struct FeatureMapsIn {
  PixelMap left1, right1, left2, right2;
  const float* labels = nullptr;  // [B, h, w, k], pixels of the grid
};

// Rows [begin, end) of the B * h rows of out: [B, h, w, k, wide].
void label_feature_forward(const FeatureShape& shape, const FeatureMapsIn& in, float* out,
                           std::int64_t begin, std::int64_t end);

// Gradients of the maps; those whose data is null are left out. A row reads and writes nothing of
// another one.
struct FeatureMapsOut {
  MutablePixelMap left1, right1, left2, right2;
};
void label_feature_backward(const FeatureShape& shape, const FeatureMapsIn& in, const float* above,
                            const FeatureMapsOut& gradient, std::int64_t begin, std::int64_t end);

}  // namespace nmrf::kernels
