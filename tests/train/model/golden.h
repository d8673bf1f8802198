// Comparing tensors with stored ones.
#pragma once

#include <torch/torch.h>

#include <filesystem>
#include <string>

#include "network/network_run.h"
#include "nmrf/image.h"
#include "train/model/layers.h"

namespace nmrf::test {

// A stored array as float, int64 or uint8 tensor.
torch::Tensor load_npy(const std::filesystem::path& path);

// uint8 RGB [B, H, W, 3] -> float [B, 3, H, W].
torch::Tensor to_images(const torch::Tensor& pixels);

Image to_image(const torch::Tensor& pixels);  // [H, W, 3] bytes

// A result that the runtime recorded in the layout of the modules': maps [1, C, h, w], tokens
// [1, h, w, k, C] and values per cell [1, h, w, n].
torch::Tensor as_module(const std::string& name, const KeptTrace::Entry& entry,
                        const torch::Tensor& like);

// Prints and returns the largest absolute difference.
double report_difference(const std::string& name, const torch::Tensor& ours,
                         const torch::Tensor& theirs);

// The order that makes seeds equal: result[..., i] is the position in `ours` of label theirs[...,
// i]. Fails the test when the two sets differ anywhere.
torch::Tensor label_order(const torch::Tensor& ours, const torch::Tensor& theirs);

// Permutes axis 3 of [B, h, w, k, ...] by an order from label_order.
torch::Tensor reorder_labels(const torch::Tensor& tensor, const torch::Tensor& order);

// The winner's lead over the second best label at every pixel, [B, H, W], from scores
// [B, h, w, k, 64] of cells of 8 x 8 pixels.
torch::Tensor winner_lead(const torch::Tensor& score);

// What a map is compared by: all of one size [B, H, W], padded to multiples of 8 where not said
// otherwise.
struct MapWithStart {
  torch::Tensor map;    // px; may be cropped at the right and at the bottom
  torch::Tensor start;  // [B, H / 4, W / 4]: the winners that refinement starts from
};
// Expects equal maps, but around cells whose winner fell the other way. Such a cell must hold a
// near-tie (`lead` below 1e-4), and the maps may differ only where refinement can carry it.
void expect_equal_but_for_ties(const std::string& name, const MapWithStart& ours,
                               const MapWithStart& theirs, const torch::Tensor& lead);

// The textured image pair of the formula case: [1, 3, H, W], 0..255.
std::pair<torch::Tensor, torch::Tensor> formula_pair(int64_t height, int64_t width);

}  // namespace nmrf::test
