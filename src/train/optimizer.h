// AdamW with the published parameter groups, the one-cycle schedule, gradient clipping and an
// optional moving average of the weights.
#pragma once

#include <torch/torch.h>

#include <map>
#include <string>
#include <vector>

#include "train/model/nmrf.h"

namespace nmrf::train {

// PyTorch's OneCycleLR with cosine annealing: from max/25 up to max in the first 5 % of the steps,
// then down to max/25e4.
struct OneCycle {
  double max_lr = 5e-4;
  std::int64_t total_steps = 1;
  double warm_up = 0.05;
  double start_divisor = 25;
  double end_divisor = 1e4;
  // Learning rate of step 0, 1, ..., total_steps - 1; the last one's beyond.
  double at(std::int64_t step) const;
};

struct AdamWOptions {
  double weight_decay = 1e-5;
  std::vector<std::string> frozen{};  // prefixes of parameter names
  double swin_lr =
      1;  // factor of the learning rate of Swin-T and of the sampling offsets behind it
};

// AdamW over the named parameters of a network. Position tables get no weight decay.
class AdamW {
 public:
  AdamW(const Network& network, const AdamWOptions& options);

  // One update of every parameter that has a gradient, with decoupled weight decay.
  void step(double lr);
  void zero_grad();
  // Scales all gradients to a common norm of at most `limit`; returns the norm before.
  double clip(double limit);

  // State by parameter name, for checkpoints: "adam_m.<name>", "adam_v.<name>", and the update
  // counts.
  std::map<std::string, torch::Tensor> state() const;
  // Throws Error(kModel) when an entry is missing or of another shape.
  void load_state(const std::map<std::string, torch::Tensor>& state);

  // Parameters that are being trained, in the network's order.
  const std::vector<std::pair<std::string, torch::Tensor>>& parameters() const {
    return parameters_;
  }

 private:
  struct Moments {
    torch::Tensor mean, square;
    std::int64_t updates = 0;
  };
  std::vector<std::pair<std::string, torch::Tensor>> parameters_;
  std::vector<Moments> moments_;
  std::vector<double> decay_, factor_;  // of each parameter: weight decay, learning rate
};

// Exponential moving average of the weights, for validation and shipping. A decay of 0 is off.
// Early on the decay is lower, min(decay, (1 + n) / (10 + n)), so that the start is soon forgotten.
class WeightAverage {
 public:
  WeightAverage(const Network& network, double decay);
  bool on() const { return decay_ > 0; }
  void update(const Network& network);
  // Exchanges the network's weights and the averages; twice restores.
  void swap(Network& network);
  std::map<std::string, torch::Tensor> state() const;  // "ema.<name>" and "ema_updates"
  void load_state(const std::map<std::string, torch::Tensor>& state);

 private:
  double decay_;
  std::int64_t updates_ = 0;
  std::vector<std::pair<std::string, torch::Tensor>> averages_;
};

}  // namespace nmrf::train
