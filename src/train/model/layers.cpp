#include "train/model/layers.h"

namespace nmrf::train {
namespace {

torch::nn::Conv2d conv(int64_t in, int64_t out, int64_t kernel) {
  return torch::nn::Conv2d(
      torch::nn::Conv2dOptions(in, out, kernel).padding(kernel / 2).bias(false));
}

}  // namespace

MlpImpl::MlpImpl(int64_t in, int64_t hidden, int64_t out)
    : fc1_(register_module("fc1", torch::nn::Linear(in, hidden))),
      fc2_(register_module("fc2", torch::nn::Linear(hidden, out))) {}

torch::Tensor MlpImpl::forward(const torch::Tensor& x) { return ops::mlp(x, fc1(), fc2()); }

HeadImpl::HeadImpl(int64_t channels, int64_t out)
    : first_(channels, channels), second_(channels, channels), last_(channels, out) {
  torch::nn::ModuleList layers(first_, second_, last_);
  register_module("layers", layers);
}

torch::Tensor HeadImpl::forward(const torch::Tensor& x) {
  return ops::relu_mlp(x, weights_of(first_), weights_of(second_), weights_of(last_));
}

ProjectionImpl::ProjectionImpl(int64_t in, int64_t hidden, int64_t out)
    : conv3_(register_module("0", conv(in, hidden, 3))),
      conv1_(register_module("3", conv(hidden, out, 1))) {}

torch::Tensor ProjectionImpl::forward(const torch::Tensor& x) {
  return ops::conv_norm_relu_conv(x, weights_of(conv3_), weights_of(conv1_));
}

WindowPadding::WindowPadding(int64_t height, int64_t width, int64_t window)
    : height(height), width(width) {
  const int64_t more_rows = (window - height % window) % window;
  const int64_t more_columns = (window - width % window) % window;
  top = more_rows / 2;
  bottom = more_rows - top;
  left = more_columns / 2;
  right = more_columns - left;
}

torch::Tensor WindowPadding::pad(const torch::Tensor& grid) const {
  if (top + bottom + left + right == 0) return grid;
  std::vector<int64_t> amounts(2 * (grid.dim() - 3), 0);  // axes behind the columns: none
  amounts.insert(amounts.end(), {left, right, top, bottom});
  return torch::constant_pad_nd(grid, amounts);
}

torch::Tensor WindowPadding::crop(const torch::Tensor& grid) const {
  return grid.narrow(1, top, height).narrow(2, left, width);
}

}  // namespace nmrf::train
