#include "model/label_seeds.h"

#include "ops/cost_volume.h"

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

torch::Tensor CostScoreImpl::forward(const torch::Tensor& volume) {
  const int64_t batch = volume.size(0), groups = volume.size(1), planes = volume.size(2),
                h = volume.size(3), w = volume.size(4);
  auto lines = volume.permute({0, 3, 4, 1, 2}).reshape({batch * h * w, groups, planes});
  auto score = last_(second_(first_(lines).relu()).relu());
  return score.view({batch, h, w, planes});
}

LabelSeeds find_label_seeds(const torch::Tensor& left, const torch::Tensor& right, CostScore& score,
                            const ModelOptions& options) {
  LabelSeeds result;
  result.volume = ops::correlation_volume(left, right, options.cost_groups, options.planes());
  result.cost = score(result.volume);
  result.prob = result.cost.softmax(-1);
  torch::NoGradGuard no_grad;
  result.seeds = ops::top_modals(ops::suppress_non_modals(result.prob), options.labels);
  return result;
}

}  // namespace nmrf
