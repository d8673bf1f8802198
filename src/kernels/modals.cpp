#include "kernels/modals.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/select.h"

namespace nmrf::kernels {
namespace {

constexpr std::int64_t kFew = 8;

}  // namespace

// True when no two of the k + 1 best are equal: then there is but one order.
bool ModalPicker::pick_distinct(const float* values, std::int64_t k, std::int64_t* best) {
  float top[kFew + 1];
  std::int64_t index[kFew + 1];
  std::fill(top, top + k + 1, -std::numeric_limits<float>::infinity());
  std::fill(index, index + k + 1, 0);
  bool numbers = true;
  const auto planes = static_cast<std::int64_t>(queue_.size());
  for (std::int64_t z = 0; z < planes; ++z) {
    const float value = values[z];
    numbers = numbers && !std::isnan(value);
    if (!(value > top[k])) continue;
    std::int64_t at = k;
    for (; at > 0 && value > top[at - 1]; --at) {
      top[at] = top[at - 1];
      index[at] = index[at - 1];
    }
    top[at] = value;
    index[at] = z;
  }
  if (!numbers) return false;
  for (std::int64_t i = 0; i < k; ++i)
    if (!(top[i] > top[i + 1])) return false;
  std::copy(index, index + k, best);
  return true;
}

void ModalPicker::pick(const float* values, std::int64_t k, std::int64_t* best) {
  if (k <= kFew && pick_distinct(values, k, best)) return;
  using Entry = std::pair<float, std::int64_t>;
  auto greater = [](const Entry& a, const Entry& b) {
    return (std::isnan(a.first) && !std::isnan(b.first)) || a.first > b.first;
  };
  const auto planes = static_cast<std::int64_t>(queue_.size());
  for (std::int64_t z = 0; z < planes; ++z) queue_[z] = {values[z], z};
  select_first(queue_.data(), queue_.size(), static_cast<std::size_t>(k), greater);
  for (std::int64_t i = 0; i < k; ++i) best[i] = queue_[i].second;
}

}  // namespace nmrf::kernels
