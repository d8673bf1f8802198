#include "train/ops/deformable.h"

#include "kernels/deformable.h"
#include "train/ops/dispatch.h"
#include "train/ops/parallel.h"

namespace nmrf::ops {
namespace {

using torch::Tensor;

Tensor plain_attention(const Tensor& value, const Tensor& offsets, const Tensor& weights,
                       int64_t heads) {
  const int64_t batch = value.size(0), h = value.size(1), w = value.size(2),
                depth = value.size(3) / heads, height = offsets.size(1), width = offsets.size(2),
                points = weights.size(3) / heads, queries = height * width;
  auto middles = [&](int64_t count) {
    return (torch::arange(count, value.options()) + 0.5) / static_cast<double>(count);
  };
  // Places in 0..1, as (x, y): normalised first, as the published operator does.
  auto place = torch::stack({middles(width).unsqueeze(0).expand({height, width}),
                             middles(height).unsqueeze(1).expand({height, width})},
                            -1)
                   .view({1, height, width, 1, 1, 2});
  auto size = torch::tensor({static_cast<double>(w), static_cast<double>(h)}, value.options());
  auto at = place + offsets.view({batch, height, width, heads, points, 2}) / size;
  auto grid = (2 * at - 1).permute({0, 3, 1, 2, 4, 5}).reshape({batch * heads, queries, points, 2});
  auto maps = value.view({batch, h, w, heads, depth})
                  .permute({0, 3, 4, 1, 2})
                  .reshape({batch * heads, depth, h, w});
  auto samples = torch::grid_sampler(maps, grid, /*bilinear*/ 0, /*zeros*/ 0, false);
  auto share = weights.view({batch, height, width, heads, points})
                   .softmax(-1)
                   .permute({0, 3, 1, 2, 4})
                   .reshape({batch * heads, 1, queries, points});
  return (samples * share)
      .sum(-1)
      .view({batch, heads * depth, height, width})
      .permute({0, 2, 3, 1})
      .contiguous();
}

Tensor fast_attention(const Tensor& value, const Tensor& offsets, const Tensor& weights,
                      int64_t heads) {
  kernels::Deformable op;
  op.query_height = offsets.size(1), op.query_width = offsets.size(2);
  op.height = value.size(1), op.width = value.size(2);
  op.heads = heads, op.points = weights.size(3) / heads, op.depth = value.size(3) / heads;
  auto out = torch::empty({value.size(0), op.query_height, op.query_width, op.channels()},
                          value.options());
  for (int64_t b = 0; b < value.size(0); ++b) {
    const Tensor v = value[b].contiguous(), o = offsets[b].contiguous(),
                 s = weights[b].contiguous();
    float* to = out[b].data_ptr<float>();
    share(op.query_height, 1, [&](int64_t begin, int64_t end) {
      kernels::deformable_forward(op, v.data_ptr<float>(), o.data_ptr<float>(), s.data_ptr<float>(),
                                  to, begin, end);
    });
  }
  return out;
}

}  // namespace

Tensor deformable_attention(const Tensor& value, const Tensor& offsets, const Tensor& weights,
                            int64_t heads) {
  TORCH_CHECK(value.dim() == 4 && value.size(3) % heads == 0 && weights.dim() == 4 &&
                  weights.size(3) % heads == 0 && offsets.size(3) == 2 * weights.size(3),
              "deformable attention expects values, offsets and weights of the same heads");
  // The kernel has no backward pass.
  if (use_fast(value, offsets, weights) && !wants_gradient({value, offsets, weights}) &&
      weights.size(3) <= kernels::Deformable::kMostSamples)
    return fast_attention(value, offsets, weights, heads);
  return plain_attention(value, offsets, weights, heads);
}

}  // namespace nmrf::ops
