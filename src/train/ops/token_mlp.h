// Token-wise multi-layer perceptrons. Tokens are the last axis of any tensor [..., C]. The fast
// forms work on tiles of tokens: hidden activations stay in cache and are computed again in the
// backward pass.
#pragma once

#include <torch/torch.h>

#include "train/ops/token_linear.h"

namespace nmrf::ops {

// fc2(gelu(fc1(x))), the exact GELU. [..., C] -> [..., out]
torch::Tensor mlp(const torch::Tensor& x, const LinearWeights& fc1, const LinearWeights& fc2);

// x + fc2(gelu(fc1(norm(x)))). [..., C] -> [..., C]
torch::Tensor mlp_residual(const torch::Tensor& x, const NormWeights& norm,
                           const LinearWeights& fc1, const LinearWeights& fc2);

// A message arrives and the MLP follows (paper, Eq. 5): u = x + W message + b, u +
// fc2(gelu(fc1(norm(u)))). message: [..., M], x: [..., C] -> [..., C]
torch::Tensor message_mlp_residual(const torch::Tensor& x, const torch::Tensor& message,
                                   const LinearWeights& entry, const NormWeights& norm,
                                   const LinearWeights& fc1, const LinearWeights& fc2);

// last(relu(second(relu(first(x))))): the heads. [..., C] -> [..., out]
torch::Tensor relu_mlp(const torch::Tensor& x, const LinearWeights& first,
                       const LinearWeights& second, const LinearWeights& last);

}  // namespace nmrf::ops
