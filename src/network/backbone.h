// Local feature CNN: the feature maps of one image at 1/4 and 1/8.
#pragma once

#include <optional>
#include <vector>

#include "network/layers.h"
#include "network/options.h"

namespace nmrf {

// Two 3x3 convolutions with instance norm and ReLU, plus the shortcut, then ReLU.
class ResidualBlock {
 public:
  ResidualBlock(Parameters& parameters, const std::string& name, std::int64_t in, std::int64_t out,
                std::int64_t stride);
  FeatureMap forward(Context& context, FeatureMap x) const;

 private:
  Convolution conv1_, conv2_;
  std::optional<Convolution> shortcut_;  // none: the identity
};

struct FeatureMaps {
  FeatureMap fine;    // [H/4, W/4, C]
  FeatureMap coarse;  // [H/8, W/8, C]: the fine map averaged over 2 x 2
};

// An image whose values are scaled by f(value, channel).
template <class F>
FeatureMap scaled_image(Context& context, const FeatureMap& image, const F& f) {
  FeatureMap result = context.map(image.height, image.width, image.channels);
  const std::int64_t row = image.width * image.channels;
  context.share(image.height, 8, [&](std::int64_t begin, std::int64_t end, int) {
    const float* from = image.values.data();
    float* to = result.values.data();
    for (std::int64_t i = begin * row; i < end * row; ++i) to[i] = f(from[i], i % image.channels);
  });
  return result;
}

// Averaged over 2 x 2.
FeatureMap half_map(Context& context, const FeatureMap& map);

class Backbone {
 public:
  Backbone(Parameters& parameters, const ModelOptions& options);
  // image: [H, W, 3], RGB 0 to 255, H and W multiples of 8.
  FeatureMaps forward(Context& context, const FeatureMap& image) const;

 private:
  Convolution conv1_;
  std::vector<ResidualBlock> blocks_;
  Convolution conv2_;
};

}  // namespace nmrf
