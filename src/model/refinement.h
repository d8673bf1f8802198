// Disparity refinement on the fine grid (paper section 3.4): one label a pixel, neighbour edges
// only.
#pragma once

#include <torch/torch.h>

#include "model/inference.h"

namespace nmrf {

// Stride-4 median pooling: [B, H, W] -> [B, H/4, W/4], the lower median (8th of 16).
torch::Tensor median_reduce(const torch::Tensor& disparity);

// `refinement` with the sizes and switches of the options.
MessagePassing make_refinement(const ModelOptions& options);

// Decodes offsets [B, h, w, 16] of the labels [B, h, w] (fine pixels) into a full-resolution map
// [B, 4h, 4w] in pixels.
torch::Tensor refined_disparity(const torch::Tensor& labels, const torch::Tensor& offsets);

}  // namespace nmrf
