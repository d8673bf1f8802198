#include "train/model/label_seeds.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace nmrf::train {
namespace {

torch::nn::Conv1d conv(int64_t in, int64_t out) {
  return torch::nn::Conv1d(torch::nn::Conv1dOptions(in, out, 5).padding(2));
}

}  // namespace

CostScoreImpl::CostScoreImpl(const ModelOptions& o)
    : first_(register_module("0", conv(o.cost_groups, o.cost_hidden1))),
      second_(register_module("2", conv(o.cost_hidden1, o.cost_hidden2))),
      last_(register_module("4", conv(o.cost_hidden2, 1))) {}

ops::ScoreConvolutions CostScoreImpl::weights() const {
  return {{first_->weight, second_->weight, last_->weight},
          {first_->bias, second_->bias, last_->bias}};
}

LabelSeeds find_label_seeds(const torch::Tensor& left, const torch::Tensor& right,
                            const CostScore& score, const ModelOptions& options) {
  return ops::seed_volume(left, right, options.cost_groups, options.planes(), score->weights(),
                          options.labels);
}

torch::Tensor between_planes(const LabelSeeds& seeds) {
  torch::NoGradGuard no_grad;
  const int64_t last = seeds.cost.size(3) - 1;
  std::vector<torch::Tensor> planes, costs;
  for (int64_t beside : {-1, 0, 1}) {
    auto plane = seeds.seeds + beside;
    auto cost = seeds.cost.gather(3, plane.clamp(0, last));
    planes.push_back(plane);
    costs.push_back(cost.masked_fill((plane < 0) | (plane > last), -1e9));
  }
  auto weights = torch::stack(costs, -1).softmax(-1);
  return (weights * torch::stack(planes, -1)).sum(-1);
}

torch::Tensor fill_seeds(LabelSeeds& seeds, torch::Tensor& starts, const torch::Tensor& guide) {
  torch::NoGradGuard no_grad;
  const int64_t k = seeds.seeds.size(3), width = seeds.seeds.size(2), height = seeds.seeds.size(1),
                planes = seeds.prob.size(3);
  // A few numbers per cell, in the order of the row: on the CPU wherever the network runs.
  auto on_cpu = [](const torch::Tensor& x) { return x.to(torch::kCPU).contiguous(); };
  auto probability = on_cpu(seeds.prob.to(torch::kFloat));
  auto own = on_cpu(seeds.seeds).clone();
  auto values = on_cpu(starts.to(torch::kFloat)).clone();
  auto kinds = torch::zeros_like(own);
  const auto map = guide.defined() ? on_cpu(guide.to(torch::kFloat)) : torch::Tensor();
  std::vector<SeedRow::Cell> cells(static_cast<std::size_t>(width));
  std::vector<float> farthest(cells.size()), nearest(cells.size());
  for (int64_t row = 0; row < own.size(0) * height; ++row) {
    SeedRow cells_of;
    cells_of.width = width, cells_of.k = k, cells_of.planes = planes;
    cells_of.seeds = own.data_ptr<int64_t>() + row * width * k;
    cells_of.starts = values.data_ptr<float>() + row * width * k;
    cells_of.kinds = kinds.data_ptr<int64_t>() + row * width * k;
    cells_of.probability = probability.data_ptr<float>() + row * width * planes;
    if (map.defined()) {
      guide_extremes(map.data_ptr<float>() + row * 64 * width, width, farthest.data(),
                     nearest.data());
      cells_of.farthest = farthest.data();
      cells_of.nearest = nearest.data();
    }
    cells_of.complete(cells.data());
  }
  seeds.seeds = own.to(seeds.seeds.device());
  starts = values.to(starts.options());
  return kinds.to(seeds.seeds.device());
}

}  // namespace nmrf::train
