// The correlation volume of the coarse level and the label seeds found in it.
#pragma once

#include <torch/torch.h>

namespace nmrf::ops {

// Three convolutions of 5 taps along the planes (zeros beyond the ends), ReLU between them: weight
// [out, in, 5], bias [out]. The last has one output, the matching score of a plane.
struct ScoreConvolutions {
  torch::Tensor weight[3], bias[3];
};

struct SeedVolume {
  torch::Tensor volume;  // [B, groups, planes, h, w] correlation_volume
  torch::Tensor cost;    // [B, h, w, planes] matching score before the softmax
  torch::Tensor prob;    // [B, h, w, planes] softmax of it
  torch::Tensor seeds;   // [B, h, w, k] int64, top_modals of suppress_non_modals; no gradient
};

// From features to label seeds. left, right: [B, C, h, w]. In its fast form the volume lies in
// memory as [B, h, w, planes, groups], and hidden layers are never written out.
SeedVolume seed_volume(const torch::Tensor& left, const torch::Tensor& right, int64_t groups,
                       int64_t planes, const ScoreConvolutions& score, int64_t k);

// Group-wise correlation: volume(b, g, z, y, x) = mean over the group's channels of
// left(b, :, y, x) * right(b, :, y, x - z); zero where x - z < 0.
// left, right: [B, C, h, w]; result: [B, groups, planes, h, w].
torch::Tensor correlation_volume(const torch::Tensor& left, const torch::Tensor& right,
                                 int64_t groups, int64_t planes);

// Suppresses what is no modal: a plane that is no maximum of its [-1, +1] neighbourhood keeps at
// most 1e-3. Equal neighbours all count as maxima. prob: [..., planes].
torch::Tensor suppress_non_modals(const torch::Tensor& prob);

// Indices of the k largest values of the last axis, best first: int64 [..., k].
// On the CPU ties are resolved as at::topk of libtorch 1.13 does (nth_element, then sort, by value
// alone, from index order), whatever the libtorch: published weights depend on that order.
torch::Tensor top_modals(const torch::Tensor& values, int64_t k);

// Reads the volume around each seed: [B, groups, planes, h, w] at seeds [B, h, w, k] (integer
// planes)
// -> [B, h, w, k, groups * (2 * radius + 1)], group-major, planes clamped to the volume.
torch::Tensor lookup_cost(const torch::Tensor& volume, const torch::Tensor& seeds, int64_t radius);

}  // namespace nmrf::ops
