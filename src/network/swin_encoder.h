// Feature maps by Swin-T and a neck: a map at 1/4 that collects from the four stages by deformable
// attention, finest first (image_encoder).
#pragma once

#include <string>
#include <vector>

#include "network/backbone.h"
#include "network/swin_backbone.h"

namespace nmrf {

// What a map takes from a stage of Swin-T.
class SwinExtractor {
 public:
  static constexpr std::int64_t kHeads = 8, kPoints = 4;

  // neck: image_encoder.neck. channels: of the map; from: of the stage's tokens.
  SwinExtractor(Parameters& parameters, const std::string& neck, std::int64_t stage,
                std::int64_t channels, std::int64_t from);
  // map: [H/4, W/4, C], changes in place; x: the tokens of the stage.
  void forward(Context& context, FeatureMap& map, const FeatureMap& x,
               const std::string& view) const;

 private:
  SwinExtractor(Parameters& parameters, const std::string& name, const std::string& fcs,
                std::int64_t stage, std::int64_t channels, std::int64_t from);
  void sample(Context& context, FeatureMap& map, const FeatureMap& x,
              const std::string& view) const;

  std::int64_t stage_, channels_;
  TokenProjection features_, value_, query_, output_, fc1_, fc2_;
  std::vector<float> taps_, taps_bias_;  // depthwise 3 x 3: [9, C/4], [C/4]
};

class SwinEncoder {
 public:
  // Of the images that Swin is pretrained on, RGB: they are scaled by (x - mean) / deviation.
  static constexpr float kMean[3] = {123.675f, 116.28f, 103.53f};
  static constexpr float kDeviation[3] = {58.395f, 57.12f, 57.375f};

  SwinEncoder(Parameters& parameters, std::int64_t channels);
  // image: [H, W, 3], RGB 0 to 255, H and W multiples of 32. `view` ends the names of traces.
  FeatureMaps forward(Context& context, const FeatureMap& image, const std::string& view) const;

 private:
  FeatureMap stem(Context& context, const FeatureMap& image) const;

  SwinBackbone backbone_;
  std::vector<Convolution> stem_;  // three of 3 x 3 with instance norm and ReLU
  Convolution stem_out_;
  std::vector<SwinExtractor> extractors_;
};

}  // namespace nmrf
