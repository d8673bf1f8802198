// Local feature CNN: the feature maps of one image at 1/4 and 1/8.
#pragma once

#include <torch/torch.h>

#include "network/options.h"

namespace nmrf::train {

// Two 3x3 convolutions with instance norm and ReLU, plus the shortcut, then ReLU.
class ResidualBlockImpl : public torch::nn::Module {
 public:
  ResidualBlockImpl(int64_t in, int64_t out, int64_t stride);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  torch::nn::Conv2d conv1_, conv2_;
  torch::nn::Conv2d shortcut_{nullptr};  // null: the identity
};
TORCH_MODULE(ResidualBlock);

struct FeatureMaps {
  torch::Tensor fine;    // [B, C, H/4, W/4]
  torch::Tensor coarse;  // [B, C, H/8, W/8]: the fine map averaged over 2 x 2
};

class BackboneImpl : public torch::nn::Module {
 public:
  explicit BackboneImpl(const ModelOptions& options);
  // images: [B, 3, H, W], RGB in [-1, 1], H and W multiples of 8.
  FeatureMaps forward(const torch::Tensor& images);

 private:
  torch::nn::Conv2d conv1_, conv2_;
  torch::nn::Sequential layer1_, layer2_, layer3_;
};
TORCH_MODULE(Backbone);

}  // namespace nmrf::train
