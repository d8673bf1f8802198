// Reading the right view at a label, and the observed label feature made from it.
#pragma once

#include <torch/torch.h>

namespace nmrf::ops {

// Reads `right` at column x - label by linear interpolation; a tap outside the image counts as
// zero. right: [B, C, h, w]; labels: [B, h, w, k] in pixels of that grid -> [B, h, w, k, C]. No
// gradient flows to the labels.
torch::Tensor warp_right(const torch::Tensor& right, const torch::Tensor& labels);

// Eq. 12 of the supplement: [gamma1 L, gamma1 R at the label, group correlation of gamma2 L with
// gamma2 R at the label and `radius` columns on either side, from left to right]. left1, right1:
// [B, C1, h, w]; left2, right2: [B, C2, h, w]; labels: [B, h, w, k]
// -> [B, h, w, k, 2 * C1 + (2 * radius + 1) * groups].
torch::Tensor label_features(const torch::Tensor& left1, const torch::Tensor& right1,
                             const torch::Tensor& left2, const torch::Tensor& right2,
                             const torch::Tensor& labels, int64_t groups, int64_t radius = 0);

// The correlation alone: [B, h, w, k, (2 * radius + 1) * groups].
torch::Tensor correlate(const torch::Tensor& left, const torch::Tensor& right,
                        const torch::Tensor& labels, int64_t groups, int64_t radius);

}  // namespace nmrf::ops
