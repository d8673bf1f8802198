// Token-wise linear maps of the message passing steps, fused with the norm before them or the
// residual addition behind them. Tokens are the last axis of any tensor [..., C].
#pragma once

#include <torch/torch.h>

#include <vector>

namespace nmrf::ops {

// A LayerNorm over the channels (eps 1e-5); undefined tensors: none.
struct NormWeights {
  torch::Tensor weight, bias;  // [C]
};

// A Linear: weight [out, in], bias [out] or undefined.
struct LinearWeights {
  torch::Tensor weight, bias;
  bool uses_extra = true;  // in norm_linear: in = C + E, else in = C
};

// One to three linear maps of the same normalised tokens: W [norm(x), extra] + b, or W norm(x) + b
// for a map that does not use extra. x: [..., k, C]; extra: [..., k, E], or [..., 1, E] when the k
// labels of a pixel share it, or undefined
// -> for each map [..., k, out]
std::vector<torch::Tensor> norm_linear(const torch::Tensor& x, const NormWeights& norm,
                                       const torch::Tensor& extra,
                                       const std::vector<LinearWeights>& maps);

// x + W message + b. message: [..., in], x: [..., out] -> [..., out]
torch::Tensor linear_residual(const torch::Tensor& message, const LinearWeights& map,
                              const torch::Tensor& x);

}  // namespace nmrf::ops
