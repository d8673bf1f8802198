// Sinusoidal encoding of a disparity.
#pragma once

#include <torch/torch.h>

namespace nmrf::ops {

inline constexpr int64_t kEncodingChannels = 31;

// labels: [...] disparities in pixels of their grid -> [..., 31]: sin(2^f t), f = 0..14, then
// cos(2^f t), then t, with t = label * 3.14 / range in single precision. `range` is 64 on the
// coarse grid and 128 on the fine one. The published weights need t in float: in double the result
// moves by up to 20 px.
torch::Tensor encode_disparity(const torch::Tensor& labels, int64_t range);

}  // namespace nmrf::ops
