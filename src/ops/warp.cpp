#include "ops/warp.h"

namespace nmrf::ops {

torch::Tensor warp_right(const torch::Tensor& right, const torch::Tensor& labels) {
  const int64_t batch = right.size(0), channels = right.size(1), h = right.size(2),
                w = right.size(3), k = labels.size(3);
  auto columns = torch::arange(w, labels.options()).view({1, 1, w, 1});
  auto position = columns - labels.detach();  // [B, h, w, k]
  auto lower = position.floor();
  auto fraction = position - lower;
  auto rows = right.permute({0, 2, 3, 1});  // [B, h, w, C]
  auto tap = [&](const torch::Tensor& column, const torch::Tensor& weight) {
    auto inside = (column >= 0) & (column <= w - 1);
    auto index = column.clamp(0, w - 1).to(torch::kLong).view({batch, h, w * k, 1});
    auto value = rows.gather(2, index.expand({batch, h, w * k, channels}));
    auto factor = torch::where(inside, weight, torch::zeros_like(weight));
    return value.view({batch, h, w, k, channels}) * factor.unsqueeze(-1);
  };
  return tap(lower, 1 - fraction) + tap(lower + 1, fraction);
}

torch::Tensor label_features(const torch::Tensor& left1, const torch::Tensor& right1,
                             const torch::Tensor& left2, const torch::Tensor& right2,
                             const torch::Tensor& labels, int64_t groups) {
  const int64_t batch = labels.size(0), h = labels.size(1), w = labels.size(2), k = labels.size(3);
  const int64_t channels1 = left1.size(1), channels2 = left2.size(1);
  auto own = left1.permute({0, 2, 3, 1}).unsqueeze(3).expand({batch, h, w, k, channels1});
  auto other = warp_right(right1, labels);
  auto product = left2.permute({0, 2, 3, 1}).unsqueeze(3) * warp_right(right2, labels);
  auto correlation = product.view({batch, h, w, k, groups, channels2 / groups}).mean(-1);
  return torch::cat({own, other, correlation}, -1);
}

}  // namespace nmrf::ops
