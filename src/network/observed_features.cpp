#include "network/observed_features.h"

namespace nmrf {

MatchingProjections::MatchingProjections(Parameters& parameters, const ModelOptions& o)
    : gamma1_(parameters, "concatconv", o.feature_channels, o.gamma1_hidden, o.gamma1_channels),
      gamma2_(parameters, "gw", o.feature_channels, o.gamma2_hidden, o.gamma2_channels) {}

MatchingMaps MatchingProjections::forward(Context& context, FeatureMap& left, FeatureMap& right,
                                          bool last) const {
  MatchingMaps maps;
  maps.left1 = gamma1_.forward(context, left);
  maps.left2 = gamma2_.forward(context, left);
  if (last) left = {};
  maps.right1 = gamma1_.forward(context, right);
  maps.right2 = gamma2_.forward(context, right);
  if (last) right = {};
  return maps;
}

ObservedFeatures::ObservedFeatures(const MatchingMaps& maps, const float* labels,
                                   std::int64_t count, const ModelOptions& options) {
  shape_.batch = 1;
  shape_.height = maps.left1.height;
  shape_.width = maps.left1.width;
  shape_.labels = count;
  shape_.channels1 = maps.left1.channels;
  shape_.channels2 = maps.left2.channels;
  shape_.groups = options.gamma2_groups;
  shape_.radius = options.gamma2_radius;
  in_ = {maps.left1.view(), maps.right1.view(), maps.left2.view(), maps.right2.view(), labels};
}

double ObservedFeatures::operations() const {
  return 2.0 *
         static_cast<double>(shape_.channels1 + (2 * shape_.radius + 1) * 2 * shape_.channels2);
}

void ObservedFeatures::row(std::int64_t y, float* features) const {
  // The kernel writes row y of a whole result.
  kernels::label_feature_forward(
      shape_, in_, features - y * shape_.width * shape_.labels * shape_.wide(), y, y + 1);
}

}  // namespace nmrf
