// Small building blocks that several stages share, registered under the published names.
#pragma once

#include <torch/torch.h>

#include <map>
#include <string>

#include "train/ops/convolution.h"
#include "train/ops/token_mlp.h"

namespace nmrf::train {

// Named intermediate tensors of one forward pass, for parity tests and visualisation.
using Trace = std::map<std::string, torch::Tensor>;

inline void record(Trace* trace, const std::string& name, const torch::Tensor& value) {
  if (trace) (*trace)[name] = value.detach();
}

// A module's parameters, as the operators take them.
inline ops::LinearWeights weights_of(const torch::nn::Linear& linear) {
  return {linear->weight, linear->bias};
}
inline ops::NormWeights weights_of(const torch::nn::LayerNorm& norm) {
  return {norm->weight, norm->bias};
}

// A null module: no weights.
inline ops::ConvWeights weights_of(const torch::nn::Conv2d& conv) {
  if (!conv) return {};
  return {conv->weight, conv->bias, conv->options.stride()->at(0)};
}

// fc1, GELU, fc2.
class MlpImpl : public torch::nn::Module {
 public:
  MlpImpl(int64_t in, int64_t hidden, int64_t out);
  torch::Tensor forward(const torch::Tensor& x);  // [..., in] -> [..., out]
  ops::LinearWeights fc1() const { return weights_of(fc1_); }
  ops::LinearWeights fc2() const { return weights_of(fc2_); }

 private:
  torch::nn::Linear fc1_, fc2_;
};
TORCH_MODULE(Mlp);

// Linear, ReLU, Linear, ReLU, Linear: the heads that decode an embedding.
class HeadImpl : public torch::nn::Module {
 public:
  HeadImpl(int64_t channels, int64_t out);
  torch::Tensor forward(const torch::Tensor& x);  // [..., channels] -> [..., out]
  torch::nn::Linear last() const { return last_; }

 private:
  torch::nn::Linear first_, second_, last_;
};
TORCH_MODULE(Head);

// conv 3x3, instance norm, ReLU, conv 1x1, no biases: gamma1, gamma2 and the visual context.
class ProjectionImpl : public torch::nn::Module {
 public:
  ProjectionImpl(int64_t in, int64_t hidden, int64_t out);
  torch::Tensor forward(const torch::Tensor& x);  // [B, in, h, w] -> [B, out, h, w]

 private:
  torch::nn::Conv2d conv3_, conv1_;
};
TORCH_MODULE(Projection);

// A zero border that makes a grid [B, H, W, ...] a multiple of a window, half (rounded down) of it
// at the top and the left.
struct WindowPadding {
  WindowPadding(int64_t height, int64_t width, int64_t window);
  torch::Tensor pad(const torch::Tensor& grid) const;
  torch::Tensor crop(const torch::Tensor& grid) const;

  int64_t height, width, top, bottom, left, right;
};

}  // namespace nmrf::train
