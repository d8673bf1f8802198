// Between a coarse grid of patches and the full-resolution map they tile.
#pragma once

#include <torch/torch.h>

namespace nmrf::ops {

// Patches of side s to the map they tile: [B, h, w, s * s] (row-major patches) -> [B, h * s, w *
// s].
torch::Tensor unfold_patches(const torch::Tensor& patches, int64_t side);

// Winner takes all, a full-resolution map: the lower label index on an exact tie.
struct Winners {
  torch::Tensor disparity;   // [B, H, W] in coarse pixels
  torch::Tensor confidence;  // [B, H, W] posterior probability of the winner
  torch::Tensor index;       // [B, H, W] int64, the winning label
};
// score (logits), disparity: [B, h, w, k, 64], 8 x 8 patches. No gradient.
Winners take_winners(const torch::Tensor& score, const torch::Tensor& disparity);

// Stride-4 median pooling: [B, H, W] -> [B, H/4, W/4], the lower median (8th of 16). No gradient.
torch::Tensor median_reduce(const torch::Tensor& disparity);

// Decodes offsets [B, h, w, 16] of the labels [B, h, w] (fine pixels) into a full-resolution map
// [B, 4h, 4w] in pixels: 4 max(0, label + offset).
torch::Tensor refined_disparity(const torch::Tensor& labels, const torch::Tensor& offsets);

// Inputs of edge-aware blending.
struct BlendMaps {
  torch::Tensor start;    // [B, h, w], of cells of 4 x 4 pixels
  torch::Tensor image;    // [B, 3, 4h, 4w] of 0..255
  torch::Tensor colours;  // [B, 3, h, w], means of the cells
};
// Weighted mean of the start labels of the 3 x 3 cells around each pixel of a cell (border
// replicated), minus the cell's own: [B, rows, w, 16]. head: [B, rows, w, 145], from row `first`
// on: nine logits per pixel, and one factor by which a colour difference of 16 grey levels between
// pixel and cell changes the logit. Only `head` receives a gradient.
torch::Tensor blend_starts(const torch::Tensor& head, const BlendMaps& maps, int64_t first);

}  // namespace nmrf::ops
