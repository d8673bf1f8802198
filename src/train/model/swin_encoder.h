// Feature maps by Swin-T and a neck: a map at 1/4 that collects from the four stages by deformable
// attention, finest first (image_encoder).
#pragma once

#include <torch/torch.h>

#include <vector>

#include "train/model/backbone.h"
#include "train/model/swin_backbone.h"

namespace nmrf::train {

// What the map takes from a stage of Swin-T; the stage's own norm and Linear are `fcs`.
class SwinExtractorImpl : public torch::nn::Module {
 public:
  explicit SwinExtractorImpl(int64_t channels);
  // map: [B, H/4, W/4, C]; features: [B, h, w, C] -> the new map. `step` ends the names of traces.
  torch::Tensor forward(const torch::Tensor& map, const torch::Tensor& features,
                        const std::string& step, Trace* trace);
  void initialise();

 private:
  torch::nn::LayerNorm query_norm_, feat_norm_, ffn_norm_;
  torch::nn::Linear sampling_offsets_, attention_weights_, value_proj_, output_proj_, fc1_, fc2_;
  torch::nn::Conv2d dwconv_;
};
TORCH_MODULE(SwinExtractor);

class SwinEncoderImpl : public torch::nn::Module {
 public:
  explicit SwinEncoderImpl(int64_t channels);
  // images: [B, 3, H, W], RGB 0 to 255, H and W multiples of 32. depth: null outside training.
  FeatureMaps forward(const torch::Tensor& images, StochasticDepth* depth = nullptr,
                      Trace* trace = nullptr);
  // The published initialisation, for what is not pretrained.
  void initialise();

 private:
  SwinBackbone backbone_;
  std::vector<torch::nn::Conv2d> stem_;
  torch::nn::Conv2d stem_out_;
  std::vector<torch::nn::LayerNorm> norms_;
  std::vector<torch::nn::Linear> fcs_;
  std::vector<SwinExtractor> extractors_;
};
TORCH_MODULE(SwinEncoder);

}  // namespace nmrf::train
