// Swin-T: the tokens of a batch of images at 1/4, 1/8, 1/16 and 1/32 (image_encoder.backbone).
// Tokens are [B, h, w, C].
#pragma once

#include <torch/torch.h>

#include <vector>

#include "network/swin_backbone.h"
#include "train/model/layers.h"

namespace nmrf::train {

// Drops branches of the blocks in training, per image. The draws of a pass follow from its seed.
class StochasticDepth {
 public:
  explicit StochasticDepth(uint64_t seed);
  // The branch of [B, h, w, C] times 0 with probability `rate`, else times 1 / (1 - rate).
  torch::Tensor thin(const torch::Tensor& branch, double rate);

 private:
  at::Generator generator_;
};

// The weights of a block's attention.
class SwinAttentionImpl : public torch::nn::Module {
 public:
  SwinAttentionImpl(int64_t channels, int64_t heads);
  torch::nn::Linear qkv, proj;
  torch::Tensor bias;  // relative_position_bias_table: [(2M-1)^2, heads]
};
TORCH_MODULE(SwinAttention);

class SwinBlockImpl : public torch::nn::Module {
 public:
  // drop: rate of stochastic depth.
  SwinBlockImpl(int64_t channels, int64_t heads, int64_t shift, double drop);
  // depth: null outside training.
  torch::Tensor forward(const torch::Tensor& x, StochasticDepth* depth);

 private:
  int64_t heads_, shift_;
  double drop_;
  torch::nn::LayerNorm norm1_, norm2_;
  SwinAttention attn_;
  Mlp mlp_;
};
TORCH_MODULE(SwinBlock);

class PatchMergingImpl : public torch::nn::Module {
 public:
  explicit PatchMergingImpl(int64_t channels);
  torch::Tensor forward(const torch::Tensor& x);  // [B, h, w, C] -> [B, h/2, w/2, 2 C]

 private:
  torch::nn::Linear reduction_;
  torch::nn::LayerNorm norm_;
};
TORCH_MODULE(PatchMerging);

class SwinBackboneImpl : public torch::nn::Module {
 public:
  // Of the last block; those before grow to it in equal steps.
  static constexpr double kMostDrop = 0.4;

  SwinBackboneImpl();
  // images: [B, 3, H, W], scaled, H and W multiples of 32 -> the tokens behind each stage.
  std::vector<torch::Tensor> forward(const torch::Tensor& images, StochasticDepth* depth,
                                     Trace* trace);
  // Truncated normal weights; the patch convolution keeps libtorch's default.
  void initialise();

 private:
  torch::nn::Conv2d patches_;
  torch::nn::LayerNorm patch_norm_;
  std::vector<std::vector<SwinBlock>> stages_;
  std::vector<PatchMerging> mergings_;
};
TORCH_MODULE(SwinBackbone);

}  // namespace nmrf::train
