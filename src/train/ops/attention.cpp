#include "train/ops/attention.h"

#include "train/ops/attention_fast.h"
#include "train/ops/attention_plain.h"
#include "train/ops/dispatch.h"

namespace nmrf::ops {
namespace {

bool absent_or_fast(const torch::Tensor& x) { return !x.defined() || use_fast(x); }

}  // namespace

torch::Tensor window_attention(const torch::Tensor& qkv, int64_t heads, int64_t window,
                               int64_t shift, const RelativePosition& position, OwnPixel own) {
  TORCH_CHECK(qkv.dim() == 5 && qkv.size(4) % (3 * heads) == 0,
              "window attention expects [B, H, W, k, 3 * heads * D]");
  TORCH_CHECK(qkv.size(1) % window == 0 && qkv.size(2) % window == 0,
              "grid is no multiple of the window");
  const bool fast = use_fast(qkv) && absent_or_fast(position.query) &&
                    absent_or_fast(position.key) && absent_or_fast(position.value) &&
                    absent_or_fast(position.bias) && fast::fits(qkv.size(4) / 3 / heads) &&
                    shift >= 0 && shift < window;
  if (fast) return fast::window_attention(qkv, heads, window, shift, position, own);
  return plain::window_attention(qkv, heads, window, shift, position, own);
}

torch::Tensor stripe_attention(const torch::Tensor& q, const torch::Tensor& k,
                               const torch::Tensor& v, int64_t heads,
                               const torch::Tensor& column_filter,
                               const torch::Tensor& row_filter) {
  TORCH_CHECK(q.dim() == 5 && heads % 2 == 0 && q.size(4) % heads == 0,
              "stripe attention expects [B, H, W, k, heads * D] and an even number of heads");
  if (use_fast(q, k, v, column_filter, row_filter) && fast::fits(q.size(4) / heads))
    return fast::stripe_attention(q, k, v, heads, column_filter, row_filter);
  return plain::stripe_attention(q, k, v, heads, column_filter, row_filter);
}

torch::Tensor local_enhancement(const torch::Tensor& v, const torch::Tensor& filter) {
  const int64_t channels = v.size(4);
  auto centre = filter.select(2, 1).select(2, 1).view({channels});
  auto sums = v.sum(3).permute({0, 3, 1, 2});  // [B, C, H, W]
  auto all =
      torch::conv2d(sums, filter, {}, 1, 1, 1, channels) - sums * centre.view({1, channels, 1, 1});
  return all.permute({0, 2, 3, 1}).unsqueeze(3) + v * centre;
}

torch::Tensor label_attention(const torch::Tensor& q, const torch::Tensor& k,
                              const torch::Tensor& v, int64_t heads) {
  TORCH_CHECK(q.dim() == 5 && q.size(4) % heads == 0,
              "label attention expects [B, H, W, k, heads * D]");
  if (use_fast(q, k, v) && fast::fits_labels(q.size(3)))
    return fast::label_attention(q, k, v, heads);
  return plain::label_attention(q, k, v, heads);
}

}  // namespace nmrf::ops
