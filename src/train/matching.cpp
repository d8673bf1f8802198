#include "train/matching.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace nmrf::train {

void ModalMatcher::suppress(std::span<const double> proposals, std::span<const double> modals) {
  kept_.assign(modals.begin(), modals.end());
  distance_.clear();
  for (double modal : modals) {
    double closest = std::numeric_limits<double>::infinity();
    for (double proposal : proposals) closest = std::min(closest, std::abs(modal - proposal));
    distance_.push_back(closest);
  }
  // Insertion sort: a handful of items, stable.
  for (std::size_t i = 1; i < kept_.size(); ++i)
    for (std::size_t j = i; j > 0 && distance_[j] < distance_[j - 1]; --j) {
      std::swap(distance_[j], distance_[j - 1]);
      std::swap(kept_[j], kept_[j - 1]);
    }
  std::size_t count = 0;
  for (double modal : kept_) {
    const bool close =
        std::any_of(kept_.begin(), kept_.begin() + static_cast<long>(count),
                    [&](double stronger) { return std::abs(stronger - modal) < kOnlineSuppress; });
    if (!close) kept_[count++] = modal;
  }
  kept_.resize(count);
}

int ModalMatcher::match(std::span<const double> proposals, std::span<const double> modals,
                        std::span<double> targets) {
  std::fill(targets.begin(), targets.end(), std::numeric_limits<double>::quiet_NaN());
  suppress(proposals, modals);
  const std::size_t pairs = std::min(kept_.size(), proposals.size());
  if (!std::all_of(proposals.begin(), proposals.end(), [](double p) { return std::isfinite(p); })) {
    // A network that has blown up: any pairs, so that its loss shows it.
    std::copy_n(kept_.begin(), pairs, targets.begin());
    return static_cast<int>(pairs);
  }
  order_.clear();
  for (std::size_t i = 0; i < proposals.size(); ++i)
    order_.push_back({proposals[i], static_cast<int>(i)});
  std::stable_sort(order_.begin(), order_.end(),
                   [](const Place& a, const Place& b) { return a.value < b.value; });
  std::sort(kept_.begin(), kept_.end());

  // Every item of the shorter list gets a partner in the longer one. cost(i, j): the least sum for
  // the first i of the shorter and the first j >= i of the longer list.
  const bool fewer_modals = kept_.size() <= order_.size();
  const std::size_t shorter = pairs, longer = std::max(kept_.size(), order_.size());
  const std::size_t stride = longer + 1;
  auto difference = [&](std::size_t i, std::size_t j) {
    return fewer_modals ? kept_[i] - order_[j].value : kept_[j] - order_[i].value;
  };
  cost_.assign((shorter + 1) * stride, 0);
  paired_.assign((shorter + 1) * stride, 0);
  for (std::size_t i = 1; i <= shorter; ++i)
    for (std::size_t j = i; j <= longer; ++j) {
      const double take = cost_[(i - 1) * stride + j - 1] + smooth_l1(difference(i - 1, j - 1));
      const bool paired = j == i || take < cost_[i * stride + j - 1];
      cost_[i * stride + j] = paired ? take : cost_[i * stride + j - 1];
      paired_[i * stride + j] = paired;
    }
  for (std::size_t i = shorter, j = longer; i > 0; --j) {
    if (!paired_[i * stride + j]) continue;
    const std::size_t modal = fewer_modals ? i - 1 : j - 1;
    const std::size_t proposal = fewer_modals ? j - 1 : i - 1;
    targets[static_cast<std::size_t>(order_[proposal].index)] = kept_[modal];
    --i;
  }
  return static_cast<int>(pairs);
}

}  // namespace nmrf::train
