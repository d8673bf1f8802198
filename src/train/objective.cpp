#include "train/objective.h"

namespace nmrf {
namespace {

// The weight of layer i of n: the last of the list belongs to the last layer.
double layer_weight(const std::vector<double>& weights, std::size_t i, std::size_t n) {
  if (weights.empty()) return 1;
  const std::size_t from_end = n - 1 - i;
  return from_end < weights.size() ? weights[weights.size() - 1 - from_end] : weights.front();
}

}  // namespace

Objective make_objective(const NetworkOutput& out, const Truth& truth, const LossOptions& options,
                         double max_disp, const CountAverager& average_counts) {
  struct Weighted {
    std::string name;
    LossTerm term;
    double weight;
  };
  std::vector<Weighted> list;
  const auto counted = counted_pixels(truth, options.max_disp);
  const bool dense = options.modals == ModalKind::kDense;
  const auto& seeds = out.proposals.seeds;
  list.push_back({"init",
                  dense ? init_loss_dense(seeds.cost, truth, max_disp)
                        : init_loss_modals(seeds.cost, truth, max_disp),
                  options.init_weight});
  if (out.proposals.labels.defined())
    list.push_back({"proposal",
                    dense ? proposal_loss_dense(out.proposals.labels, truth, counted, max_disp)
                          : proposal_loss_modals(out.proposals.labels, truth,
                                                 std::min(max_disp, options.max_disp)),
                    options.proposal_weight});
  for (std::size_t i = 0; i < out.hypotheses.size(); ++i)
    list.push_back({"coarse_" + std::to_string(i),
                    coarse_loss(out.hypotheses[i], truth, counted, options.smooth_l1),
                    layer_weight(options.coarse_weights, i, out.hypotheses.size())});
  for (std::size_t i = 0; i < out.refined.size(); ++i)
    list.push_back({"fine_" + std::to_string(i),
                    fine_loss(out.refined[i], truth, counted, options.smooth_l1),
                    layer_weight(options.fine_weights, i, out.refined.size())});

  std::vector<torch::Tensor> counts;
  for (const auto& item : list) counts.push_back(item.term.count.detach().to(torch::kDouble));
  auto shared = torch::stack(counts).to(torch::kCPU);
  if (average_counts) average_counts(shared);

  Objective objective;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const double count = std::max(shared[static_cast<int64_t>(i)].item<double>(), 1e-9);
    auto mean = list[i].term.sum / count;
    objective.terms.emplace_back(list[i].name, mean.item<double>());
    auto weighted = list[i].weight * mean;
    objective.total = objective.total.defined() ? objective.total + weighted : weighted;
  }
  if (out.disparity.defined()) {
    torch::NoGradGuard no_grad;
    objective.epe = fine_loss(out.disparity, truth, counted, false).mean().item<double>();
  }
  return objective;
}

}  // namespace nmrf
