// The k best planes of a pixel.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace nmrf::kernels {

// Keeps its memory between pixels: one object a thread.
class ModalPicker {
 public:
  explicit ModalPicker(std::int64_t planes) : queue_(static_cast<std::size_t>(planes)) {}
  void resize(std::int64_t planes) { queue_.resize(static_cast<std::size_t>(planes)); }
  // Indices of the k largest values, best first, 1 <= k <= planes; NaN counts as largest. Equal
  // values come in the order that select_first() (core/select.h) by value gives, from index order.
  void pick(const float* values, std::int64_t k, std::int64_t* best);

 private:
  bool pick_distinct(const float* values, std::int64_t k, std::int64_t* best);
  std::vector<std::pair<float, std::int64_t>> queue_;
};

}  // namespace nmrf::kernels
