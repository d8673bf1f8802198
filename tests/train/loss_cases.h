// Random truths that the tests of the losses share.
#pragma once

#include <torch/torch.h>

#include <limits>

#include "train/losses.h"

namespace nmrf::test {

using torch::Tensor;

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
inline constexpr int64_t kBatch = 2, kRows = 2, kCols = 5,
                         kPlanes = 5;  // 16 x 40 px, 40 px of disparity
inline constexpr double kCovered = 8.0 * kPlanes;

inline torch::TensorOptions doubles() { return torch::dtype(torch::kDouble); }

inline Tensor uniform(at::IntArrayRef sizes, double low, double high) {
  return torch::rand(sizes, doubles()) * (high - low) + low;
}

// About a third invalid (with disparities of all kinds there), some 0, some beyond the planes, some
// on the borders of planes, some out of view.
inline train::Truth make_truth(int64_t rows = 8 * kRows, int64_t cols = 8 * kCols) {
  train::Truth truth;
  truth.disparity = uniform({kBatch, rows, cols}, 0, 50);
  truth.valid = torch::rand({kBatch, rows, cols}) < 0.7;
  auto kind = torch::rand({kBatch, rows, cols});
  truth.disparity = torch::where(kind < 0.1, (truth.disparity / 8).floor() * 8, truth.disparity);
  auto& values = truth.disparity;
  values.masked_fill_((kind > 0.9) & ~truth.valid, kInf);
  values.masked_fill_((kind > 0.95) & ~truth.valid, kNone);
  values.index_put_({0, 0, 0}, 0.0);
  truth.valid.index_put_({0, 0, 0}, true);
  truth.valid.slice(2, 8, 16).slice(1, 0, 8).select(0, 1).fill_(false);  // one whole cell
  truth.modals = uniform({kBatch, kRows, kCols, 4}, 0.1, 48);
  auto some = torch::rand({kBatch, kRows, kCols, 4});
  truth.modals.masked_fill_(some < 0.3, kNone);
  truth.modals = torch::where(some > 0.9, (truth.modals / 8).floor() * 8, truth.modals);
  truth.modals.select(0, 1).select(0, 0).select(0, 1).fill_(kNone);
  return truth;
}

}  // namespace nmrf::test
