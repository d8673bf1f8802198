#include "model/label_seeds.h"

namespace nmrf {
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

}  // namespace nmrf
