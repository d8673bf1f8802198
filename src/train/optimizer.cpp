#include "train/optimizer.h"

#include <cmath>
#include <numbers>

#include "core/check.h"

namespace nmrf::train {
namespace {

constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;

bool ends_with(const std::string& text, const std::string& ending) {
  return text.size() >= ending.size() &&
         text.compare(text.size() - ending.size(), ending.size(), ending) == 0;
}

// The entry of a checkpoint, checked against what it is for.
const torch::Tensor& entry(const std::map<std::string, torch::Tensor>& state,
                           const std::string& name, at::IntArrayRef shape) {
  auto found = state.find(name);
  check(found != state.end(), ErrorKind::kModel, "the checkpoint has no '{}'", name);
  check(found->second.sizes() == shape, ErrorKind::kModel,
        "'{}' of the checkpoint has another shape", name);
  return found->second;
}

}  // namespace

double OneCycle::at(std::int64_t step) const {
  auto anneal = [](double from, double to, double share) {
    return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * share));
  };
  const double start = max_lr / start_divisor, end = start / end_divisor;
  const double peak = warm_up * static_cast<double>(total_steps) - 1;
  const double last = static_cast<double>(total_steps) - 1;
  const double now = std::min(static_cast<double>(step), last);
  if (now <= peak) return anneal(start, max_lr, peak > 0 ? now / peak : 1);
  return anneal(max_lr, end,
                last > peak ? (now - std::max(peak, 0.0)) / (last - std::max(peak, 0.0)) : 1);
}

AdamW::AdamW(const Network& network, const AdamWOptions& options) {
  for (const auto& item : network->named_parameters()) {
    bool fixed = false;
    for (const auto& prefix : options.frozen) fixed |= item.key().rfind(prefix, 0) == 0;
    item.value().set_requires_grad(!fixed);
    if (fixed) continue;
    parameters_.emplace_back(item.key(), item.value());
    moments_.push_back({torch::zeros_like(item.value()), torch::zeros_like(item.value()), 0});
    const bool table = ends_with(item.key(), "relative_position_enc_table") ||
                       ends_with(item.key(), "relative_position_bias_table");
    decay_.push_back(table ? 0 : options.weight_decay);
    const bool slow = item.key().starts_with("image_encoder.backbone.") ||
                      item.key().find(".sampling_offsets.") != std::string::npos;
    factor_.push_back(slow ? options.swin_lr : 1);
  }
  check(!parameters_.empty(), ErrorKind::kUsage, "every parameter is frozen: nothing to train");
}

void AdamW::step(double rate) {
  torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const double lr = rate * factor_[i];
    auto& parameter = parameters_[i].second;
    const auto& gradient = parameter.grad();
    if (!gradient.defined()) continue;
    Moments& moments = moments_[i];
    ++moments.updates;
    const double n = static_cast<double>(moments.updates);
    if (decay_[i] > 0) parameter.mul_(1 - lr * decay_[i]);
    moments.mean.mul_(kBeta1).add_(gradient, 1 - kBeta1);
    moments.square.mul_(kBeta2).addcmul_(gradient, gradient, 1 - kBeta2);
    auto size = (moments.square.sqrt() / std::sqrt(1 - std::pow(kBeta2, n))).add_(kEpsilon);
    parameter.addcdiv_(moments.mean, size, -lr / (1 - std::pow(kBeta1, n)));
  }
}

void AdamW::zero_grad() {
  for (auto& item : parameters_) item.second.mutable_grad() = torch::Tensor();
}

double AdamW::clip(double limit) {
  torch::NoGradGuard no_grad;
  double sum = 0;
  for (auto& item : parameters_)
    if (const auto& gradient = item.second.grad(); gradient.defined())
      sum += gradient.to(torch::kDouble).pow(2).sum().item<double>();
  const double norm = std::sqrt(sum);
  if (limit > 0 && norm > limit)
    for (auto& item : parameters_)
      if (item.second.grad().defined()) item.second.mutable_grad().mul_(limit / (norm + 1e-6));
  return norm;
}

std::map<std::string, torch::Tensor> AdamW::state() const {
  std::map<std::string, torch::Tensor> state;
  auto updates = torch::empty({static_cast<int64_t>(parameters_.size())}, torch::kLong);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    state["adam_m." + parameters_[i].first] = moments_[i].mean;
    state["adam_v." + parameters_[i].first] = moments_[i].square;
    updates[static_cast<int64_t>(i)] = moments_[i].updates;
  }
  state["adam_updates"] = updates;
  return state;
}

void AdamW::load_state(const std::map<std::string, torch::Tensor>& state) {
  torch::NoGradGuard no_grad;
  const auto& updates = entry(state, "adam_updates", {static_cast<int64_t>(parameters_.size())});
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto& [name, parameter] = parameters_[i];
    moments_[i].mean.copy_(entry(state, "adam_m." + name, parameter.sizes()));
    moments_[i].square.copy_(entry(state, "adam_v." + name, parameter.sizes()));
    moments_[i].updates = updates[static_cast<int64_t>(i)].item<int64_t>();
  }
}

WeightAverage::WeightAverage(const Network& network, double decay) : decay_(decay) {
  if (!on()) return;
  for (const auto& item : network->named_parameters())
    averages_.emplace_back(item.key(), item.value().detach().clone());
}

void WeightAverage::update(const Network& network) {
  if (!on()) return;
  torch::NoGradGuard no_grad;
  ++updates_;
  const double n = static_cast<double>(updates_);
  const double decay = std::min(decay_, (1 + n) / (10 + n));
  std::size_t i = 0;
  for (const auto& item : network->named_parameters())
    averages_[i++].second.lerp_(item.value(), 1 - decay);
}

void WeightAverage::swap(Network& network) {
  if (!on()) return;
  torch::NoGradGuard no_grad;
  std::size_t i = 0;
  for (auto& item : network->named_parameters()) {
    auto kept = item.value().detach().clone();
    item.value().copy_(averages_[i].second);
    averages_[i++].second.copy_(kept);
  }
}

std::map<std::string, torch::Tensor> WeightAverage::state() const {
  std::map<std::string, torch::Tensor> state;
  if (!on()) return state;
  for (const auto& [name, value] : averages_) state["ema." + name] = value;
  state["ema_updates"] = torch::full({1}, updates_, torch::kLong);
  return state;
}

void WeightAverage::load_state(const std::map<std::string, torch::Tensor>& state) {
  if (!on()) return;
  for (auto& [name, value] : averages_) value.copy_(entry(state, "ema." + name, value.sizes()));
  updates_ = entry(state, "ema_updates", {1})[0].item<int64_t>();
}

}  // namespace nmrf::train
