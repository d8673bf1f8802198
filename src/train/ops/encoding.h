// Sinusoidal encoding of a disparity.
#pragma once

#include <torch/torch.h>

namespace nmrf::ops {

// labels: [...] disparities in pixels of their grid -> [..., 2F+1]: sin(2^f t), f = 0..F-1,
// then cos(2^f t), then t, with t = label * 3.14 / range in single precision; F, the frequencies,
// is at most 15. `range` is 64 on the coarse grid and 128 on the fine one. The published weights
// need t in float: in double the result moves by up to 20 px.
torch::Tensor encode_disparity(const torch::Tensor& labels, int64_t range,
                               int64_t frequencies = 15);

}  // namespace nmrf::ops
