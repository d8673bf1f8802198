// Top k label seeds (paper section 3.3): cost volume, modals, the best k.
#pragma once

#include <torch/torch.h>

#include "model/layers.h"
#include "model/options.h"

namespace nmrf {

struct LabelSeeds {
  torch::Tensor volume;  // [B, groups, planes, h, w] group-wise correlation
  torch::Tensor cost;    // [B, h, w, planes] matching score before the softmax
  torch::Tensor prob;    // [B, h, w, planes] softmax of it
  torch::Tensor seeds;  // [B, h, w, k] int64 plane indices = disparity in coarse pixels, best first
};

// Three 1-D convolutions along the disparity turn the groups into one score a plane. Registered as
// `mlp` with the convolutions at 0, 2, 4.
class CostScoreImpl : public torch::nn::Module {
 public:
  explicit CostScoreImpl(const ModelOptions& options);
  torch::Tensor forward(const torch::Tensor& volume);  // [B,g,planes,h,w] -> [B,h,w,planes]

 private:
  torch::nn::Conv1d first_, second_, last_;
};
TORCH_MODULE(CostScore);

// left, right: coarse features [B, C, h, w].
LabelSeeds find_label_seeds(const torch::Tensor& left, const torch::Tensor& right, CostScore& score,
                            const ModelOptions& options);

}  // namespace nmrf
