// Samples as the tensors of a training step.
#pragma once

#include <torch/torch.h>

#include <vector>

#include "data/sample.h"
#include "train/losses.h"

namespace nmrf::train {

struct Batch {
  torch::Tensor left, right;              // [B, 3, H, W] RGB 0..255
  torch::Tensor clean_left, clean_right;  // before colours and patches changed; or undefined
  Truth truth;
  std::int64_t size() const { return left.size(0); }
};

// Stacks samples of one size; for ModalKind::kSuperpixel also the modals that each brings along.
Batch make_batch(const std::vector<Sample>& samples, ModalKind modals, torch::Device device);

// A part of a batch.
Batch narrow(const Batch& batch, std::int64_t begin, std::int64_t count);

}  // namespace nmrf::train
