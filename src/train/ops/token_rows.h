// How the token operators see tensors: as rows of channels, split among threads.
#pragma once

#include <torch/torch.h>

#include <algorithm>

#include "kernels/pack.h"
#include "kernels/tiles.h"
#include "train/ops/parallel.h"

namespace nmrf::tokens {

constexpr double kNormEps = 1e-5;

// [..., C] -> [rows, C] with contiguous channels; a view wherever the strides allow one.
inline torch::Tensor rows_of(const torch::Tensor& x) {
  auto rows = x.reshape({-1, x.size(-1)});
  return rows.size(1) == 1 || rows.stride(1) == 1 ? rows : rows.contiguous();
}

inline InputRows input_rows(const torch::Tensor& rows) {
  if (!rows.defined()) return {};
  return {rows.data_ptr<float>(), static_cast<std::size_t>(rows.stride(0))};
}

inline OutputRows output_rows(const torch::Tensor& rows) {
  if (!rows.defined()) return {};
  return {rows.data_ptr<float>(), static_cast<std::size_t>(rows.stride(0))};
}

inline const float* data_or_null(const torch::Tensor& tensor) {
  return tensor.defined() ? tensor.data_ptr<float>() : nullptr;
}

// libtorch's autograd functions take no undefined tensors: an empty vector stands in for one.
inline torch::Tensor or_stand_in(const torch::Tensor& tensor) {
  return tensor.defined() ? tensor : torch::empty({0}, torch::kFloat);
}
inline torch::Tensor unless_stand_in(const torch::Tensor& tensor) {
  return tensor.dim() == 1 && tensor.size(0) == 0 ? torch::Tensor() : tensor;
}

constexpr int64_t kTile = 12;  // rows of a register tile

// f(begin, end) over `tokens` rows, shared by the threads; boundaries are multiples of `labels`.
template <class F>
void share_rows(int64_t tokens, int64_t labels, const F& f) {
  const int64_t unit = kTile * labels;
  ops::share((tokens + unit - 1) / unit, 4, [&](int64_t begin, int64_t end) {
    f(static_cast<std::size_t>(begin * unit),
      static_cast<std::size_t>(std::min(end * unit, tokens)));
  });
}

// Into how many ranges to split `tokens` rows: one a thread, none smaller than a few register
// tiles.
inline int64_t range_count(int64_t tokens) {
  const int64_t threads = at::in_parallel_region() ? 1 : at::get_num_threads();
  return std::clamp<int64_t>(tokens / (2 * kTile), 1, threads);
}

// Calls f(begin, end, range) for each range on its own thread; boundaries are multiples of
// `labels`. The split depends on nothing but the arguments: sums kept per range repeat exactly.
template <class F>
void for_ranges(int64_t tokens, int64_t labels, int64_t ranges, const F& f) {
  const int64_t unit = kTile * labels, portion = (tokens + ranges - 1) / ranges;
  const int64_t each = (portion + unit - 1) / unit * unit;
  at::parallel_for(0, ranges, 1, [&](int64_t first, int64_t last) {
    for (int64_t range = first; range < last; ++range) {
      const int64_t begin = std::min(range * each, tokens), end = std::min(begin + each, tokens);
      f(static_cast<std::size_t>(begin), static_cast<std::size_t>(end), range);
    }
  });
}

// One block of floats for packed weights, handed out piece by piece.
class Packing {
 public:
  explicit Packing(std::size_t floats)
      : block_(torch::empty({static_cast<int64_t>(floats)}, torch::kFloat)),
        next_(block_.data_ptr<float>()) {}
  float* take(std::size_t floats) {
    float* piece = next_;
    next_ += padded(floats);
    return piece;
  }

 private:
  torch::Tensor block_;
  float* next_;
};

// pack_transposed() by all threads: panels are independent, and 64 columns are whole panels with
// every instruction set.
inline void share_packing(const float* w, std::size_t stride, std::size_t k, std::size_t n,
                          std::size_t depth, std::size_t offset, float* packed) {
  constexpr int64_t kColumns = 64;
  const auto columns = static_cast<int64_t>(n);
  ops::share((columns + kColumns - 1) / kColumns, 1, [&](int64_t first, int64_t last) {
    const auto begin = static_cast<std::size_t>(first * kColumns),
               end = static_cast<std::size_t>(std::min(last * kColumns, columns));
    pack_transposed(w + begin * stride, stride, k, end - begin, depth, offset,
                    packed + begin * depth);
  });
}

// Parameter gradients, one set a range, added up in the order of the ranges.
class GradientSums {
 public:
  GradientSums(int64_t ranges, std::size_t floats)
      : sets_(torch::empty({ranges, static_cast<int64_t>(floats)}, torch::kFloat)) {}
  // The zeroed set of a range; called on its own thread.
  float* begin(int64_t range) {
    float* set = sets_.data_ptr<float>() + range * sets_.size(1);
    std::fill(set, set + sets_.size(1), 0.0f);
    return set;
  }
  void finish() { total_ = sets_.size(0) == 1 ? sets_[0] : sets_.sum(0); }
  torch::Tensor vector(std::size_t at, int64_t size) const {
    return total_.narrow(0, static_cast<int64_t>(at), size);
  }
  // [out, in] of rows padded to kPad.
  torch::Tensor matrix(std::size_t at, int64_t out, int64_t in) const {
    const auto row = static_cast<int64_t>(padded(static_cast<std::size_t>(in)));
    return vector(at, out * row).view({out, row}).narrow(1, 0, in);
  }

 private:
  torch::Tensor sets_, total_;
};

}  // namespace nmrf::tokens
