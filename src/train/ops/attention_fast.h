// The three attentions by the CPU kernels, with hand-written gradients. Float32 only; no second
// derivatives.
#pragma once

#include "train/ops/attention.h"

namespace nmrf::ops::fast {

// Whether the kernels serve heads of `depth` channels, and pixels of so many labels.
bool fits(int64_t depth);
bool fits_labels(int64_t labels);

// As the functions of the same name in ops/attention.h.
torch::Tensor window_attention(const torch::Tensor& qkv, int64_t heads, int64_t window,
                               int64_t shift, const RelativePosition& position, OwnPixel own);
torch::Tensor stripe_attention(const torch::Tensor& q, const torch::Tensor& k,
                               const torch::Tensor& v, int64_t heads,
                               const torch::Tensor& column_filter, const torch::Tensor& row_filter);
torch::Tensor label_attention(const torch::Tensor& q, const torch::Tensor& k,
                              const torch::Tensor& v, int64_t heads);

}  // namespace nmrf::ops::fast
