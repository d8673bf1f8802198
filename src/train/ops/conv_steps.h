// Convolutions and norms of a group of maps, forward and backward: kernels spread over the threads.
// All maps are [batch, h, w, C] without gaps.
#pragma once

#include <torch/torch.h>

#include <optional>
#include <vector>

#include "kernels/direct_conv.h"
#include "kernels/instance_norm.h"
#include "kernels/winograd.h"
#include "train/ops/memory.h"

namespace nmrf::conv {

// [B, C, h, w] in memory order [B, h, w, C].
inline torch::Tensor channels_last(const torch::Tensor& x) {
  return x.contiguous(torch::MemoryFormat::ChannelsLast);
}
// Mean and scale of the maps of a batch: [2, B, C].
inline torch::Tensor empty_norm(int64_t batch, int64_t channels) {
  return torch::empty({2, batch, channels}, torch::kFloat);
}
inline Norm norm_at(const torch::Tensor& norm, int64_t image) {
  const float* mean = norm.data_ptr<float>() + image * norm.size(2);
  return {mean, mean + norm.size(1) * norm.size(2)};
}

// Maps `image` .. of a tensor made by empty_map or channels_last.
inline float* map_at(const torch::Tensor& maps, int64_t image) {
  return maps.data_ptr<float>() + image * maps.size(1) * maps.size(2) * maps.size(3);
}

// Calls f(first, count) for groups of maps small enough to stay in a cache from step to step, but
// as many as there are threads. `map`: the largest one met.
template <class F>
void for_groups(const torch::Tensor& map, const F& f) {
  constexpr int64_t kBytes = 4 << 20;
  const int64_t batch = map.size(0);
  const int64_t bytes = map.size(1) * map.size(2) * map.size(3) * 4;
  const int64_t threads = at::in_parallel_region() ? 1 : at::get_num_threads();
  const int64_t group =
      std::clamp<int64_t>(kBytes / std::max<int64_t>(bytes, 1), threads, std::max(batch, threads));
  for (int64_t first = 0; first < batch; first += group) f(first, std::min(group, batch - first));
}

// One convolution of maps of one size.
class Conv {
 public:
  // weight: [out, in, k, k]; height, width: of the input.
  Conv(const torch::Tensor& weight, int64_t stride, int64_t height, int64_t width);

  int64_t in() const { return in_; }
  int64_t out() const { return out_; }
  int64_t out_height() const { return out_height_; }
  int64_t out_width() const { return out_width_; }

  // y = conv(x) (+ bias of padded size). Norm: where mean and scale of y go, [2, all maps, out]
  // from map `image`; or undefined.
  void forward(int64_t count, const Source& x, const float* bias, float* y,
               const torch::Tensor& norm = {}, int64_t image = 0);

  // dx = gradient of x (+ add where gate > 0).
  struct Addition {
    const float* data = nullptr;
    const float* gate = nullptr;
  };
  void backward(int64_t count, const float* dy, float* dx, const Addition& addition);
  // dx += gradient of x
  void add_backward(int64_t count, const float* dy, float* dx);
  // dy_before = gradient of `before`, where x = relu(norm(before)).
  void backward_through_norm(int64_t count, const float* dy, const Source& before, float* d_before);

  // Gradient of the weights: adds up groups, then gives [out, in, k, k].
  void add_weights_gradient(int64_t count, const Source& x, const float* dy);
  torch::Tensor weights_gradient();

 private:
  bool winograd() const { return kernel_ == 3 && stride_ == 1; }
  Winograd winograd_op(int64_t count, bool for_weights = false) const;
  Winograd winograd_backward_op(int64_t count) const;
  Direct direct_op(int64_t count) const;
  void pack();
  void pack_backward();
  void run_backward(int64_t count, const float* dy, const WinogradResult& result, bool add);

  torch::Tensor weight_;  // contiguous
  int64_t in_, out_, kernel_, stride_, height_, width_, out_height_, out_width_;
  torch::Tensor packed_, packed_backward_;
  std::optional<DirectBackward> direct_backward_;
  torch::Tensor sums_;  // [ranges, floats]
};

// Steps on `count` maps of `channels` and `pixels`.
void run_activate(int64_t count, int64_t channels, int64_t pixels, const Source& y, float* out);
void run_add_residual(int64_t count, int64_t channels, int64_t pixels, const Source& y,
                      const Source& shortcut, float* out);
// dy = gradient of y; dz may be dy.
void run_norm_backward(int64_t count, int64_t channels, int64_t pixels, const NormBackward& in,
                       float* dy);
// Sums over maps and pixels: [channels].
torch::Tensor run_channel_sums(int64_t count, int64_t channels, int64_t pixels, const float* x);

}  // namespace nmrf::conv
