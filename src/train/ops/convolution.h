// The 2-D convolutions of the feature network with what surrounds them: instance norm (no affine
// parameters, eps 1e-5), ReLU, the residual addition. Maps are [B, C, h, w]; on the CPU the results
// have their channels last in memory. Kernels are square, padded with kernel / 2 zeros.
#pragma once

#include <torch/torch.h>

namespace nmrf::ops {

// Weight [out, in, k, k], bias [out] or undefined.
struct ConvWeights {
  torch::Tensor weight{}, bias{};
  int64_t stride = 1;
};

// [B, in, h, w] -> [B, out, ceil(h / stride), ceil(w / stride)]
torch::Tensor convolve(const torch::Tensor& x, const ConvWeights& conv);

// relu(norm(conv(x))). A norm takes any bias away: the fast form skips it and gives it zero
// gradient.
torch::Tensor conv_norm_relu(const torch::Tensor& x, const ConvWeights& conv);

// relu(shortcut + relu(norm(second(relu(norm(first(x))))))), where the shortcut is x, or
// norm(past(x)) when `past` has a weight. first and past have the same stride.
torch::Tensor residual_block(const torch::Tensor& x, const ConvWeights& first,
                             const ConvWeights& second, const ConvWeights& past);

// last(relu(norm(first(x)))), where last is a 1x1 convolution of stride 1.
torch::Tensor conv_norm_relu_conv(const torch::Tensor& x, const ConvWeights& first,
                                  const ConvWeights& last);

}  // namespace nmrf::ops
