// Disparity refinement on the fine grid (paper section 3.4): one label a pixel, neighbour edges
// only.
#pragma once

#include <torch/torch.h>

#include "train/model/inference.h"

namespace nmrf::train {

// `refinement` with the sizes and switches of the options.
MessagePassing make_refinement(const ModelOptions& options);

// The labels that the search before refinement (option refinement.search; not in the paper) chooses
// from, and how far inference believes in each.
struct Candidates {
  torch::Tensor labels;     // [B, H/4, W/4, k] fine pixels
  torch::Tensor log_prior;  // the same shape
};
// Of each 4 x 4 block: the mean of every label's hypotheses and of its posterior. No gradient.
Candidates candidates_of(const Hypotheses& hypotheses);

// Where near its candidates the views of a fine cell match best.
struct Search {
  torch::Tensor labels;  // [B, H/4, W/4, k] fine pixels
  // [B, H/4, W/4, k, 2 r + 1]: of disparity label + r first, label - r last; one softmax over all.
  torch::Tensor logits;
  // [B, H/4, W/4]: the label with the most mass, plus the mean offset under its logits. No
  // gradient.
  torch::Tensor found() const;
};

class FineSearchImpl : public torch::nn::Module {
 public:
  explicit FineSearchImpl(const ModelOptions& options);
  // left, right: fine features [B, C, H/4, W/4].
  Search forward(const torch::Tensor& left, const torch::Tensor& right,
                 const Candidates& candidates);

 private:
  int64_t groups_, radius_;
  Mlp score_;
  torch::Tensor trust_;  // in the prior
};
TORCH_MODULE(FineSearch);

// Which of the starts around it a pixel belongs to (option refinement.blend; not in the paper): a
// mean of those of the 3 x 3 cells, weighted by what the embedding says and by how far the pixel's
// colour is from the mean of each cell.
class CellBlendImpl : public torch::nn::Module {
 public:
  explicit CellBlendImpl(const ModelOptions& options);
  // embedding [B, h, w, C], start [B, h, w], image [B, 3, 4h, 4w] of 0..255. What the mean adds to
  // the start of each of a cell's 16 pixels, [B, h, w, 16].
  torch::Tensor forward(const torch::Tensor& embedding, const torch::Tensor& start,
                        const torch::Tensor& image);

 private:
  Mlp weigh_;
};
TORCH_MODULE(CellBlend);

}  // namespace nmrf::train
