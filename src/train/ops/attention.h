// The three attentional aggregations of the network, over tokens laid out as [B, H, W, k, C]:
// k labels a pixel, C = heads * D channels.
#pragma once

#include <torch/torch.h>

namespace nmrf::ops {

// Encodings of the relative position in a window of M x M pixels; row (dy + M - 1)(2M - 1) + (dx +
// M - 1) belongs to query pixel minus key pixel = (dy, dx). Undefined tensors switch a term off.
struct RelativePosition {
  torch::Tensor query;  // r^q: [(2M-1)^2, heads, D]
  torch::Tensor key;    // r^k: the same
  torch::Tensor value;  // r^v: the same
  torch::Tensor bias;   // fixed bias: [(2M-1)^2, heads]
};

// Which labels of a query's own pixel it attends to.
enum class OwnPixel {
  kItself,  // only the label itself: edges inside the pixel are cut
  kAll,     // every label of the pixel, like those of any neighbour
};

// Eq. 6 of the paper over windows of M x M pixels, cyclically shifted by `shift` with Swin's region
// mask:
//   logit(v, u) = s q_v.k_u + s q_v.r^k + s k_u.r^q + bias,   s = D^-1/2
//   message(v)  = sum_u softmax_u(logit) (v_u + r^v)
// qkv: [B, H, W, k, 3C], channels {q, k, v} x heads x D; H and W are multiples of M. -> [B, H, W,
// k, C]
torch::Tensor window_attention(const torch::Tensor& qkv, int64_t heads, int64_t window,
                               int64_t shift, const RelativePosition& position, OwnPixel own);

// Cross-shaped attention: the first half of the channels (and heads) attends within the pixel's
// column, the second half within its row, to all labels there but the other ones of its own pixel.
// The locally-enhanced term adds a three-tap filter of the values along the stripe, summed over the
// labels of the neighbours: w[0] S(p-1) + w[1] v + w[2] S(p+1).
// q, k, v: [B, H, W, k, C]; column_filter, row_filter: [C/2, 3] -> [B, H, W, k, C]
torch::Tensor stripe_attention(const torch::Tensor& q, const torch::Tensor& k,
                               const torch::Tensor& v, int64_t heads,
                               const torch::Tensor& column_filter, const torch::Tensor& row_filter);

// The same locally-enhanced term for local windows: a 3 x 3 depthwise filter over the whole grid,
// of the sum of the labels for the eight neighbours and of the label itself at the centre. v: [B,
// H, W, k, C]; filter: [C, 1, 3, 3] -> [B, H, W, k, C]
torch::Tensor local_enhancement(const torch::Tensor& v, const torch::Tensor& filter);

// Self edges: attention among the k labels of each pixel, the label itself included.
// q, k, v: [B, H, W, k, C] -> [B, H, W, k, C]
torch::Tensor label_attention(const torch::Tensor& q, const torch::Tensor& k,
                              const torch::Tensor& v, int64_t heads);

}  // namespace nmrf::ops
