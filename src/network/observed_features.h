// Observed label features (supplement, Eq. 12): what both views show at a label.
#pragma once

#include "kernels/label_feature.h"
#include "network/layers.h"
#include "network/options.h"

namespace nmrf {

// gamma1 (concatenated) and gamma2 (correlated) of both views at one level.
struct MatchingMaps {
  FeatureMap left1, right1, left2, right2;
};

class MatchingProjections {
 public:
  // Published names `concatconv` (gamma1) and `gw` (gamma2).
  MatchingProjections(Parameters& parameters, const ModelOptions& options);
  // last: gives each view's features back as soon as it is done with them.
  MatchingMaps forward(Context& context, FeatureMap& left, FeatureMap& right, bool last) const;

 private:
  Projection gamma1_, gamma2_;
};

// [gamma1 L, gamma1 R at the label, group correlation of gamma2 L with gamma2 R at the label and
// `radius` columns on either side]: rows [begin, end) of [h, w, k, channels].
// labels: [h, w, k] pixels of the grid.
class ObservedFeatures {
 public:
  ObservedFeatures(const MatchingMaps& maps, const float* labels, std::int64_t count,
                   const ModelOptions& options);
  std::int64_t channels() const { return shape_.wide(); }
  double operations() const;  // per label
  // One row of the grid.
  void row(std::int64_t y, float* features) const;

 private:
  kernels::FeatureShape shape_;
  kernels::FeatureMapsIn in_;
};

}  // namespace nmrf
