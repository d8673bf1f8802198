#include "ops/cost_volume.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace nmrf::ops {

torch::Tensor correlation_volume(const torch::Tensor& left, const torch::Tensor& right,
                                 int64_t groups, int64_t planes) {
  const int64_t batch = left.size(0), channels = left.size(1), h = left.size(2), w = left.size(3);
  std::vector<torch::Tensor> slices;
  slices.reserve(planes);
  for (int64_t z = 0; z < planes; ++z) {
    if (z >= w) {
      slices.push_back(torch::zeros({batch, groups, h, w}, left.options()));
      continue;
    }
    auto product = left.narrow(3, z, w - z) * right.narrow(3, 0, w - z);
    auto plane = product.view({batch, groups, channels / groups, h, w - z}).mean(2);
    slices.push_back(torch::constant_pad_nd(plane, {z, 0}));
  }
  return torch::stack(slices, 2);
}

torch::Tensor suppress_non_modals(const torch::Tensor& prob) {
  constexpr float kFloor = 1e-3f;
  const int64_t planes = prob.size(-1);
  auto flat = prob.reshape({-1, 1, planes});
  auto peak = torch::max_pool1d(flat, 3, 1, 1);
  auto suppressed = torch::where(flat == peak, flat, flat.clamp_max(kFloor));
  return suppressed.view(prob.sizes());
}

torch::Tensor top_modals(const torch::Tensor& values, int64_t k) {
  if (!values.is_cpu()) return std::get<1>(values.topk(k, -1));
  auto contiguous = values.detach().contiguous();
  const int64_t planes = contiguous.size(-1);
  auto shape = contiguous.sizes().vec();
  shape.back() = k;
  auto result = torch::empty(shape, torch::kLong);
  const int64_t rows = planes > 0 ? contiguous.numel() / planes : 0;
  const float* source = contiguous.data_ptr<float>();
  int64_t* target = result.data_ptr<int64_t>();
  at::parallel_for(0, rows, 256, [&](int64_t begin, int64_t end) {
    using Entry = std::pair<float, int64_t>;
    auto greater = [](const Entry& a, const Entry& b) {  // NaN counts as largest
      return (std::isnan(a.first) && !std::isnan(b.first)) || a.first > b.first;
    };
    std::vector<Entry> queue(planes);
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t z = 0; z < planes; ++z) queue[z] = {source[row * planes + z], z};
      std::nth_element(queue.begin(), queue.begin() + k - 1, queue.end(), greater);
      std::sort(queue.begin(), queue.begin() + k - 1, greater);
      for (int64_t i = 0; i < k; ++i) target[row * k + i] = queue[i].second;
    }
  });
  return result;
}

torch::Tensor lookup_cost(const torch::Tensor& volume, const torch::Tensor& seeds, int64_t radius) {
  const int64_t batch = volume.size(0), groups = volume.size(1), planes = volume.size(2);
  const int64_t h = volume.size(3), w = volume.size(4), k = seeds.size(3), taps = 2 * radius + 1;
  auto offsets = torch::arange(-radius, radius + 1, seeds.options());
  auto index = (seeds.unsqueeze(-1) + offsets).clamp(0, planes - 1);  // [B, h, w, k, taps]
  index = index.view({batch, h, w, 1, k * taps}).expand({batch, h, w, groups, k * taps});
  auto by_pixel = volume.permute({0, 3, 4, 1, 2});  // [B, h, w, groups, planes]
  return by_pixel.gather(4, index)
      .view({batch, h, w, groups, k, taps})
      .permute({0, 1, 2, 4, 3, 5})
      .reshape({batch, h, w, k, groups * taps});
}

}  // namespace nmrf::ops
