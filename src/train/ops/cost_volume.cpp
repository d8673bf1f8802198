#include "train/ops/cost_volume.h"

#include <ATen/Parallel.h>

#include <vector>

#include "kernels/modals.h"
#include "train/ops/cost_volume_fast.h"
#include "train/ops/dispatch.h"

namespace nmrf::ops {
namespace {

using torch::Tensor;

// [B, groups, planes, h, w] -> [B, h, w, planes]
Tensor score_of(const Tensor& volume, const ScoreConvolutions& score) {
  const int64_t batch = volume.size(0), groups = volume.size(1), planes = volume.size(2),
                h = volume.size(3), w = volume.size(4);
  auto x = volume.permute({0, 3, 4, 1, 2}).reshape({batch * h * w, groups, planes});
  for (int i = 0; i < 3; ++i) {
    x = torch::conv1d(x, score.weight[i], score.bias[i], 1, 2);
    if (i < 2) x = x.relu();
  }
  return x.view({batch, h, w, planes});
}

Tensor lookup_plain(const Tensor& volume, const Tensor& seeds, int64_t radius) {
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

}  // namespace

SeedVolume seed_volume(const Tensor& left, const Tensor& right, int64_t groups, int64_t planes,
                       const ScoreConvolutions& score, int64_t k) {
  TORCH_CHECK(left.dim() == 4 && left.sizes() == right.sizes(), "two maps [B, C, h, w]");
  TORCH_CHECK(groups > 0 && left.size(1) % groups == 0, "groups must divide the channels");
  TORCH_CHECK(k >= 1 && k <= planes, "at least one label, at most one a plane");
  for (int i = 0; i < 3; ++i)
    TORCH_CHECK(score.weight[i].dim() == 3 && score.weight[i].size(2) == 5 &&
                    score.weight[i].size(1) == (i == 0 ? groups : score.weight[i - 1].size(0)) &&
                    score.bias[i].numel() == score.weight[i].size(0),
                "three convolutions of 5 taps that follow each other");
  TORCH_CHECK(score.weight[2].size(0) == 1, "one score a plane");
  bool fast = use_fast(left, right) && left.numel() > 0;
  for (int i = 0; i < 3; ++i) fast = fast && use_fast(score.weight[i], score.bias[i]);
  if (fast) return fast::seed_volume(left, right, groups, planes, score, k);
  SeedVolume result;
  result.volume = correlation_volume(left, right, groups, planes);
  result.cost = score_of(result.volume, score);
  result.prob = result.cost.softmax(-1);
  torch::NoGradGuard no_grad;
  result.seeds = top_modals(suppress_non_modals(result.prob), k);
  return result;
}

Tensor correlation_volume(const Tensor& left, const Tensor& right, int64_t groups, int64_t planes) {
  const int64_t batch = left.size(0), channels = left.size(1), h = left.size(2), w = left.size(3);
  std::vector<Tensor> slices;
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

Tensor suppress_non_modals(const Tensor& prob) {
  constexpr float kFloor = 1e-3f;
  const int64_t planes = prob.size(-1);
  auto flat = prob.reshape({-1, 1, planes});
  auto peak = torch::max_pool1d(flat, 3, 1, 1);
  auto suppressed = torch::where(flat == peak, flat, flat.clamp_max(kFloor));
  return suppressed.view(prob.sizes());
}

Tensor top_modals(const Tensor& values, int64_t k) {
  if (!values.is_cpu()) return std::get<1>(values.topk(k, -1));
  auto contiguous = values.detach().to(torch::kFloat).contiguous();
  const int64_t planes = contiguous.size(-1);
  auto shape = contiguous.sizes().vec();
  shape.back() = k;
  auto result = torch::empty(shape, torch::kLong);
  const int64_t rows = planes > 0 ? contiguous.numel() / planes : 0;
  const float* source = contiguous.data_ptr<float>();
  int64_t* target = result.data_ptr<int64_t>();
  at::parallel_for(0, rows, 256, [&](int64_t begin, int64_t end) {
    kernels::ModalPicker picker(planes);
    for (int64_t row = begin; row < end; ++row)
      picker.pick(source + row * planes, k, target + row * k);
  });
  return result;
}

Tensor lookup_cost(const Tensor& volume, const Tensor& seeds, int64_t radius) {
  TORCH_CHECK(volume.dim() == 5 && seeds.dim() == 4 && seeds.size(0) == volume.size(0) &&
                  seeds.size(1) == volume.size(3) && seeds.size(2) == volume.size(4),
              "a volume [B, groups, planes, h, w] and seeds [B, h, w, k]");
  if (use_fast(volume) && seeds.is_cpu() && seeds.scalar_type() == torch::kLong)
    return fast::lookup_cost(volume, seeds, radius);
  return lookup_plain(volume, seeds, radius);
}

}  // namespace nmrf::ops
