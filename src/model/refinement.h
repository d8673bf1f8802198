// Disparity refinement on the fine grid (paper section 3.4): one label a pixel, neighbour edges
// only.
#pragma once

#include <torch/torch.h>

#include "model/inference.h"

namespace nmrf {

// `refinement` with the sizes and switches of the options.
MessagePassing make_refinement(const ModelOptions& options);

// Where near a start label the views match best (option refinement.search; not in the paper).
struct Search {
  torch::Tensor start;   // [B, H/4, W/4] fine pixels
  torch::Tensor logits;  // [B, H/4, W/4, 2 r + 1]: of disparity start + r first, start - r last
  // start and the mean offset under the softmax of the logits.
  torch::Tensor found() const;
};

class FineSearchImpl : public torch::nn::Module {
 public:
  explicit FineSearchImpl(const ModelOptions& options);
  // left, right: fine features [B, C, H/4, W/4]; start: [B, H/4, W/4] fine pixels.
  Search forward(const torch::Tensor& left, const torch::Tensor& right, const torch::Tensor& start);

 private:
  int64_t groups_, radius_;
  Mlp score_;
};
TORCH_MODULE(FineSearch);

}  // namespace nmrf
