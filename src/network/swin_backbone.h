// Swin-T: the tokens of one image at 1/4, 1/8, 1/16 and 1/32 (image_encoder.backbone).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/attention.h"
#include "network/layers.h"

namespace nmrf {

// The one size there is; the sizes of the stages follow from it.
struct SwinSizes {
  static constexpr std::int64_t stages = 4, patch = 4, window = 7, depth = 32, mlp_ratio = 4;
  static constexpr std::int64_t blocks[stages] = {2, 2, 6, 2};
  static constexpr std::int64_t channels(std::int64_t stage) { return std::int64_t{96} << stage; }
  static constexpr std::int64_t heads(std::int64_t stage) { return channels(stage) / depth; }
};

// x += attention among the tokens of a 7 x 7 window, shifted by 3 in odd blocks; x += MLP(x).
class SwinBlock {
 public:
  SwinBlock(Parameters& parameters, const std::string& name, std::int64_t channels,
            std::int64_t heads, std::int64_t shift);
  void forward(Context& context, FeatureMap& x) const;

 private:
  std::int64_t heads_, shift_;
  TokenProjection qkv_;
  TokenMlp mlp_;
  Packed packed_;
  kernels::PositionTables tables_;  // only which of them are there
  const float* packed_tables_ = nullptr;
  std::vector<float> outside_;  // q, k, v of the zeros around the grid: the biases
};

// 2 x 2 tokens become one of twice the channels.
class PatchMerging {
 public:
  PatchMerging(Parameters& parameters, const std::string& name, std::int64_t channels);
  FeatureMap forward(Context& context, FeatureMap x) const;

 private:
  TokenProjection reduction_;
};

class SwinBackbone {
 public:
  SwinBackbone(Parameters& parameters, const std::string& name);
  // The tokens before the first block. image: [H, W, 3], scaled, H and W multiples of 32
  // -> [H/4, W/4, 96].
  FeatureMap embed(Context& context, const FeatureMap& image) const;
  // The blocks of a stage; x changes in place. `view` ends the names of traces.
  void run_stage(Context& context, std::int64_t stage, FeatureMap& x,
                 const std::string& view) const;
  // What the next stage works on.
  FeatureMap merge(Context& context, std::int64_t stage, FeatureMap x) const;

 private:
  struct SwinStage {
    std::vector<SwinBlock> blocks;
    std::optional<PatchMerging> merging;  // none behind the last stage
  };
  Convolution patches_;
  std::vector<float> norm_weight_, norm_bias_;
  std::vector<SwinStage> stages_;
};

}  // namespace nmrf
