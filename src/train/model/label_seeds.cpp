#include "train/model/label_seeds.h"

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

constexpr float kSame = 0.4f;  // planes between two seeds of one surface

// One row of cells.
struct SeedRow {
  int64_t width, k, planes;
  int64_t* seeds;       // [width, k]
  float* starts;        // [width, k]
  int64_t* kinds;       // [width, k]
  const float* chance;  // [width], of the best seed
  const float* far;     // [width], what the guide says; null without one
  const float* near;

  // As the best seeds say: kMatched, kUnsure or kContradicted.
  std::vector<CellState> states() const {
    std::vector<float> best(width, 0.f);
    std::vector<int64_t> owner(width, -2);
    auto right_cell = [&](int64_t i) { return i - seeds[i * k]; };
    for (int64_t i = 0; i < width; ++i) {
      const int64_t j = right_cell(i);
      if (j < 0 || chance[i] <= best[j]) continue;
      best[j] = chance[i];
      owner[j] = seeds[i * k];
    }
    std::vector<CellState> result(width, CellState::kMatched);
    for (int64_t i = 0; i < width; ++i) {
      const int64_t j = right_cell(i);
      if (chance[i] < 0.5f)
        result[i] = CellState::kUnsure;
      else if (j < 0 || std::abs(owner[j] - seeds[i * k]) > 1)
        result[i] = CellState::kContradicted;
    }
    return result;
  }

  // The cell from which on the right view shows the row: two matched ones in a row begin there, as
  // one may be chance. 0 where there are none.
  int64_t first_seen(const std::vector<CellState>& state) const {
    for (int64_t i = 0; i + 1 < width; ++i)
      if (state[i] == CellState::kMatched && state[i + 1] == CellState::kMatched) return i;
    return 0;
  }

  // Gives the role to the seed that says the same, unless a guide has, or to the last of the cell's
  // own but its best, instead of what is there.
  void lend(int64_t i, float value, CellState state, SeedRole role) {
    const int64_t own = seed_kind(state, SeedRole::kOwn);
    float* start = starts + i * k;
    int64_t* kind = kinds + i * k;
    int64_t slot =
        std::find_if(start, start + k, [&](float s) { return std::abs(s - value) < kSame; }) -
        start;
    if (slot == k) {
      slot = k - 1;
      while (slot > 0 && kind[slot] != own) --slot;
      if (slot == 0) return;
      start[slot] = value;
      seeds[i * k + slot] = std::clamp<int64_t>(std::lround(value), 0, planes - 1);
    }
    if (kind[slot] == own) kind[slot] = seed_kind(state, role);
  }

  void fill() {
    constexpr float kNone = -1;
    auto state = states();
    std::vector<float> best(width), from_right(width);
    for (int64_t i = 0; i < width; ++i) best[i] = starts[i * k];
    float seen = kNone;
    int64_t edge = 0;  // cells before it are out of the right view
    for (int64_t i = width - 1; i >= 0; --i) {
      if (edge == 0 && seen > static_cast<float>(i)) edge = i + 1;
      if (edge > 0) state[i] = CellState::kBeyond;
      from_right[i] = seen;
      if (state[i] == CellState::kMatched) seen = best[i];
    }
    const int64_t first = first_seen(state);
    float from_left = kNone;
    for (int64_t i = 0; i < width; ++i) {
      std::fill_n(kinds + i * k, k, seed_kind(state[i], SeedRole::kOwn));
      if (far) {
        lend(i, far[i], state[i], SeedRole::kGuide);
        lend(i, near[i], state[i], SeedRole::kGuide);
      }
      if (state[i] == CellState::kMatched) {
        from_left = best[i];
        continue;
      }
      const float high = std::max(from_left, from_right[i]);
      const bool both = from_left != kNone && from_right[i] != kNone;
      const float low = both ? std::min(from_left, from_right[i]) : high;
      if (low == kNone) continue;
      lend(i, low, state[i], SeedRole::kFarther);
      if (i < first && first < planes)
        lend(i, static_cast<float>(first), state[i], SeedRole::kOutside);
      if (high - low >= kSame) lend(i, high, state[i], SeedRole::kNearer);
    }
  }
};

}  // namespace

torch::Tensor fill_seeds(LabelSeeds& seeds, torch::Tensor& starts, const torch::Tensor& guide) {
  torch::NoGradGuard no_grad;
  const int64_t k = seeds.seeds.size(3), width = seeds.seeds.size(2);
  // A few numbers a cell, in the order of the row: on the CPU wherever the network runs.
  auto on_cpu = [](const torch::Tensor& x) { return x.to(torch::kCPU).contiguous(); };
  auto chance = on_cpu(seeds.prob.gather(3, seeds.seeds.narrow(3, 0, 1)).to(torch::kFloat));
  auto planes = on_cpu(seeds.seeds).clone();
  auto values = on_cpu(starts.to(torch::kFloat)).clone();
  auto kinds = torch::zeros_like(planes);
  torch::Tensor near, far;
  if (guide.defined()) {
    near = on_cpu(torch::max_pool2d(guide, 8) / 8);
    far = on_cpu(torch::max_pool2d(-guide, 8) / -8);
  }
  for (int64_t row = 0; row < planes.size(0) * planes.size(1); ++row) {
    SeedRow{width,
            k,
            seeds.prob.size(3),
            planes.data_ptr<int64_t>() + row * width * k,
            values.data_ptr<float>() + row * width * k,
            kinds.data_ptr<int64_t>() + row * width * k,
            chance.data_ptr<float>() + row * width,
            far.defined() ? far.data_ptr<float>() + row * width : nullptr,
            near.defined() ? near.data_ptr<float>() + row * width : nullptr}
        .fill();
  }
  seeds.seeds = planes.to(seeds.seeds.device());
  starts = values.to(starts.options());
  return kinds.to(seeds.seeds.device());
}

}  // namespace nmrf
