// Top k label seeds (paper section 3.3): cost volume, modals, the best k.
#pragma once

#include <torch/torch.h>

#include "train/model/layers.h"
#include "network/options.h"
#include "train/ops/cost_volume.h"

namespace nmrf {

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

// A cell is matched, or it is not for one of three reasons; a seed is its own, lent by the farther
// or the nearer surface beside it, what a guide says, or the least that puts the cell and those up
// to the row's first match out of the right view.
enum class CellState : int64_t { kMatched, kUnsure, kContradicted, kBeyond };
enum class SeedRole : int64_t { kOwn, kFarther, kNearer, kGuide, kOutside };
constexpr int64_t kSeedRoles = 5;
constexpr int64_t kSeedKinds = 4 * kSeedRoles;
constexpr int64_t seed_kind(CellState state, SeedRole role) {
  return kSeedRoles * static_cast<int64_t>(state) + static_cast<int64_t>(role);
}

// Where the best seed of a cell is no match, surfaces seen beside it are likelier than its weaker
// seeds: the starts of the nearest matched cells of the row, the farther and the nearer surface,
// are lent to it and take the place of its last seeds, or of the one it already has within 0.4 of a
// plane. A match is likelier than not (else the cell is unsure), and no better one of the same
// right cell contradicts it. Cells beyond the right view's left edge (where the surface to their
// right would be out of view) get that surface, matched or not. What stands left of the row's first
// match and is nowhere in the right view may be too near to be in it: it is lent the disparity, in
// planes the number of cells up to that match, from which on it is.
// A guide is a map of the same pair, [B, 8 h, 8 w] px, found before at another size: the smallest
// and the largest disparity it has in a cell are lent to the cell first, matched or not. The best
// seed of a cell is never replaced. Changes seeds.seeds and starts, [B, h, w, k] in coarse pixels,
// and returns the seed_kind of each, int64.
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

}  // namespace nmrf
