// Top k label seeds (paper section 3.3): cost volume, modals, the best k.
#pragma once

#include <torch/torch.h>

#include "network/extensions/seed_completion.h"
#include "network/options.h"
#include "train/model/layers.h"
#include "train/ops/cost_volume.h"

namespace nmrf::train {

// Seeds are plane indices = disparities in coarse pixels, best first. The volume is let go after
// seed propagation unless a trace or a gradient needs it.
using LabelSeeds = ops::SeedVolume;

// Three 1-D convolutions along the disparity turn the groups into one score a plane. Registered as
// `mlp` with the convolutions at 0, 2, 4.
class CostScoreImpl : public torch::nn::Module {
 public:
  explicit CostScoreImpl(const ModelOptions& options);
  ops::ScoreConvolutions weights() const;

 private:
  torch::nn::Conv1d first_, second_, last_;
};
TORCH_MODULE(CostScore);

// left, right: coarse features [B, C, h, w].
LabelSeeds find_label_seeds(const torch::Tensor& left, const torch::Tensor& right,
                            const CostScore& score, const ModelOptions& options);

// The mean of the planes z - 1, z, z + 1 of each seed z under the softmax of their costs, [B, h, w,
// k]: where the initialisation loss has taught the cost, a disparity between two planes. No
// gradient.
torch::Tensor between_planes(const LabelSeeds& seeds);

// Seed completion (network/extensions/seed_completion.h). guide: a map of the same pair,
// [B, 8 h, 8 w] px, found before at another size, or undefined. Changes seeds.seeds and starts,
// [B, h, w, k] in coarse pixels, and returns the seed_kind of each, int64. No gradient.
torch::Tensor fill_seeds(LabelSeeds& seeds, torch::Tensor& starts, const torch::Tensor& guide = {});

// A learned vector for each kind, nothing at first.
class SeedKindsImpl : public torch::nn::Module {
 public:
  explicit SeedKindsImpl(int64_t channels)
      : weight_(register_parameter("weight", torch::zeros({kSeedKinds, channels}))) {}
  // [B, h, w, k] -> [B, h, w, k, C]
  torch::Tensor forward(const torch::Tensor& kinds) { return torch::embedding(weight_, kinds); }

 private:
  torch::Tensor weight_;
};
TORCH_MODULE(SeedKinds);

}  // namespace nmrf::train
