// The fast CPU form of the cost volume's operators; entered through ops/cost_volume.h.
#pragma once

#include "train/ops/cost_volume.h"

namespace nmrf::ops::fast {

// float32 CPU tensors, shapes as there and checked.
SeedVolume seed_volume(const torch::Tensor& left, const torch::Tensor& right, int64_t groups,
                       int64_t planes, const ScoreConvolutions& score, int64_t k);
torch::Tensor lookup_cost(const torch::Tensor& volume, const torch::Tensor& seeds, int64_t radius);

}  // namespace nmrf::ops::fast
