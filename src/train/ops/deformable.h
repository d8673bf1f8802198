// Deformable attention: every query reads a few places of another grid that it chooses itself.
#pragma once

#include <torch/torch.h>

namespace nmrf::ops {

// Queries of a fine grid H x W read values of a level h x w that covers the same image, at their
// own place plus an offset in pixels of the level: bilinear, taps outside are zero.
// value: [B, h, w, heads * D]; offsets: [B, H, W, heads * points * 2], (x, y) last; weights:
// [B, H, W, heads * points] before their softmax over the points -> [B, H, W, heads * D].
// Gradients flow to all three.
torch::Tensor deformable_attention(const torch::Tensor& value, const torch::Tensor& offsets,
                                   const torch::Tensor& weights, int64_t heads);

}  // namespace nmrf::ops
