// Cost volume (paper, section 3.3 and Eq. 9): group-wise correlation of the coarse features, its
// matching score along the disparity planes, and the softmax of that score.
#pragma once

#include "kernels/label_volume.h"
#include "network/backbone.h"
#include "network/layers.h"
#include "network/options.h"

namespace nmrf {

// Of a coarse grid [h, w]; a plane is one coarse pixel of disparity.
struct CostVolume {
  std::int64_t height = 0, width = 0, planes = 0, groups = 0, labels = 0;
  Buffer<float> correlation;    // [h, w, planes, groups]
  Buffer<float> cost;           // [h, w, planes], before the softmax
  Buffer<float> probability;    // [h, w, planes]
  Buffer<std::int64_t> modals;  // [h, w, k]: planes of the k best modals, best first

  std::int64_t cells() const { return height * width; }
  kernels::VolumeShape shape() const;
};

class CostScore {
 public:
  // Three convolutions of 5 taps along the planes (published names dpn.mlp.0, 2, 4).
  CostScore(Parameters& parameters, const ModelOptions& options);
  // left, right: coarse features. planes: of the volume, a run-time choice.
  CostVolume forward(Context& context, const FeatureMap& left, const FeatureMap& right,
                     std::int64_t planes, std::int64_t labels) const;

 private:
  std::int64_t groups_, hidden1_, hidden2_;
  Packed packed_;
  kernels::ScoreWeights weights_;
};

}  // namespace nmrf
