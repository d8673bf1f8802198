#include "train/model/backbone.h"

#include "train/model/layers.h"

namespace nmrf::train {
namespace {

torch::nn::Conv2d conv(int64_t in, int64_t out, int64_t kernel, int64_t stride, bool bias) {
  return torch::nn::Conv2d(
      torch::nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(bias));
}

torch::nn::Sequential stage(int64_t in, int64_t out, int64_t stride) {
  return torch::nn::Sequential(ResidualBlock(in, out, stride), ResidualBlock(out, out, 1));
}

}  // namespace

ResidualBlockImpl::ResidualBlockImpl(int64_t in, int64_t out, int64_t stride)
    : conv1_(register_module("conv1", conv(in, out, 3, stride, false))),
      conv2_(register_module("conv2", conv(out, out, 3, 1, false))) {
  if (stride == 1 && in == out) return;
  shortcut_ = conv(in, out, 1, stride, true);
  register_module("downsample", torch::nn::Sequential(shortcut_));
}

torch::Tensor ResidualBlockImpl::forward(const torch::Tensor& x) {
  return ops::residual_block(x, weights_of(conv1_), weights_of(conv2_), weights_of(shortcut_));
}

BackboneImpl::BackboneImpl(const ModelOptions& o)
    : conv1_(register_module("conv1", conv(3, o.backbone_stem, 7, 2, false))),
      conv2_(register_module("conv2", conv(o.backbone_stage3, o.feature_channels, 1, 1, true))),
      layer1_(register_module("layer1", stage(o.backbone_stem, o.backbone_stage1, 1))),
      layer2_(register_module("layer2", stage(o.backbone_stage1, o.backbone_stage2, 2))),
      layer3_(register_module("layer3", stage(o.backbone_stage2, o.backbone_stage3, 1))) {}

FeatureMaps BackboneImpl::forward(const torch::Tensor& images) {
  auto x = ops::conv_norm_relu(images, weights_of(conv1_));
  x = layer3_->forward(layer2_->forward(layer1_->forward(x)));
  FeatureMaps maps;
  maps.fine = ops::convolve(x, weights_of(conv2_));
  maps.coarse = torch::avg_pool2d(maps.fine, 2, 2);
  return maps;
}

}  // namespace nmrf::train
