#include "model/label_seeds.h"

#include <algorithm>
#include <cmath>
#include <vector>

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

namespace {

// One row of cells.
struct SeedRow {
  int64_t width, k;
  int64_t* seeds;       // [width, k]
  float* starts;        // [width, k]
  int64_t* kinds;       // [width, k], zeros = kMatched
  const float* chance;  // [width], of the best seed

  // Which best seeds are matches.
  std::vector<char> matches() const {
    std::vector<float> best(width, 0.f);
    std::vector<int64_t> owner(width, -2);
    auto right_cell = [&](int64_t i) { return i - seeds[i * k]; };
    for (int64_t i = 0; i < width; ++i) {
      const int64_t j = right_cell(i);
      if (j < 0 || chance[i] <= best[j]) continue;
      best[j] = chance[i];
      owner[j] = seeds[i * k];
    }
    std::vector<char> matched(width);
    for (int64_t i = 0; i < width; ++i) {
      const int64_t j = right_cell(i);
      matched[i] = j >= 0 && chance[i] >= 0.5f && std::abs(owner[j] - seeds[i * k]) <= 1;
    }
    return matched;
  }

  void put(int64_t i, int64_t label, float value, SeedKind kind, int64_t planes) {
    kinds[i * k + label] = kind;
    starts[i * k + label] = value;
    seeds[i * k + label] = std::clamp<int64_t>(std::lround(value), 0, planes - 1);
  }

  void fill(int64_t planes) {
    constexpr float kNone = -1;
    auto matched = matches();
    std::vector<float> best(width), from_right(width);
    for (int64_t i = 0; i < width; ++i) best[i] = starts[i * k];
    float seen = kNone;
    int64_t edge = 0;  // cells before it are out of the right view
    for (int64_t i = width - 1; i >= 0; --i) {
      if (edge == 0 && seen > static_cast<float>(i)) edge = i + 1;
      from_right[i] = seen;
      if (edge == 0 && matched[i]) seen = best[i];
    }
    float from_left = kNone;
    for (int64_t i = 0; i < width; ++i) {
      if (i >= edge && matched[i]) {
        from_left = best[i];
        continue;
      }
      std::fill_n(kinds + i * k, k, kUnmatched);
      // The farther surface last; one of them alone where the row has no other.
      const float low = from_left == kNone || from_right[i] == kNone
                            ? std::max(from_left, from_right[i])
                            : std::min(from_left, from_right[i]);
      if (low == kNone || k < 2) continue;
      put(i, k - 1, low, kFarther, planes);
      if (k > 2 && from_left != kNone && from_right[i] != kNone)
        put(i, k - 2, std::max(from_left, from_right[i]), kNearer, planes);
    }
  }
};

}  // namespace

torch::Tensor fill_unmatched(LabelSeeds& seeds, torch::Tensor& starts) {
  torch::NoGradGuard no_grad;
  const int64_t k = seeds.seeds.size(3), width = seeds.seeds.size(2);
  // A few numbers a cell, in the order of the row: on the CPU wherever the network runs.
  auto on_cpu = [](const torch::Tensor& x) { return x.to(torch::kCPU).contiguous(); };
  auto chance = on_cpu(seeds.prob.gather(3, seeds.seeds.narrow(3, 0, 1)).to(torch::kFloat));
  auto planes = on_cpu(seeds.seeds).clone();
  auto values = on_cpu(starts.to(torch::kFloat)).clone();
  auto kinds = torch::zeros_like(planes);
  for (int64_t row = 0; row < planes.size(0) * planes.size(1); ++row) {
    SeedRow{width,
            k,
            planes.data_ptr<int64_t>() + row * width * k,
            values.data_ptr<float>() + row * width * k,
            kinds.data_ptr<int64_t>() + row * width * k,
            chance.data_ptr<float>() + row * width}
        .fill(seeds.prob.size(3));
  }
  seeds.seeds = planes.to(seeds.seeds.device());
  starts = values.to(starts.options());
  return kinds.to(seeds.seeds.device());
}

}  // namespace nmrf
