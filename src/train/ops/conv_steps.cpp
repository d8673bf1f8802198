#include "train/ops/conv_steps.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "train/ops/parallel.h"

namespace nmrf::conv {
namespace {

using torch::Tensor;

std::size_t size(int64_t n) { return static_cast<std::size_t>(n); }

// f(begin, end) over units of work.
template <class F>
void parallel(std::size_t units, const F& f) {
  ops::share(static_cast<int64_t>(units), 1,
        [&](int64_t begin, int64_t end) { f(size(begin), size(end)); });
}

Tensor floats(std::size_t count) { return ops::empty_floats({static_cast<int64_t>(count)}); }

// Sums of weight gradients are kept for so many ranges of the work; their split is all that the
// number of threads changes.
int64_t range_count() {
  constexpr int64_t kMost = 16;  // a set of sums is large
  return at::in_parallel_region() ? 1 : std::min<int64_t>(at::get_num_threads(), kMost);
}

template <class F>
void for_ranges(int64_t ranges, std::size_t units, const F& f) {
  const std::size_t each = (units + size(ranges) - 1) / size(ranges);
  at::parallel_for(0, ranges, 1, [&](int64_t first, int64_t last) {
    for (int64_t range = first; range < last; ++range)
      f(std::min(size(range) * each, units), std::min((size(range) + 1) * each, units), range);
  });
}

// Means of the masked gradients of a norm, merged from a set a unit: [count, 2, channels].
Tensor merged_sums(const Tensor& sums, std::size_t count, std::size_t units, std::size_t channels,
                   std::size_t pixels) {
  Tensor means = floats(count * 2 * channels);
  for (std::size_t i = 0; i < count; ++i)
    merge_sums(sums.data_ptr<float>() + i * units * moments_size(channels), units, channels, pixels,
               means.data_ptr<float>() + i * 2 * channels);
  return means;
}

}  // namespace

Conv::Conv(const Tensor& weight, int64_t stride, int64_t height, int64_t width)
    : weight_(weight.detach().contiguous()),
      in_(weight.size(1)),
      out_(weight.size(0)),
      kernel_(weight.size(2)),
      stride_(stride),
      height_(height),
      width_(width),
      out_height_((height + 2 * (kernel_ / 2) - kernel_) / stride + 1),
      out_width_((width + 2 * (kernel_ / 2) - kernel_) / stride + 1) {}

Winograd Conv::winograd_op(int64_t count, bool for_weights) const {
  return {size(count), size(height_), size(width_), size(in_), size(out_), for_weights};
}

Winograd Conv::winograd_backward_op(int64_t count) const {
  return {size(count), size(height_), size(width_), size(out_), size(in_)};
}

Direct Conv::direct_op(int64_t count) const {
  return {size(count),   size(height_),     size(width_),      size(in_),        size(kernel_),
          size(stride_), size(kernel_ / 2), size(out_height_), size(out_width_), size(out_)};
}

void Conv::pack() {
  if (packed_.defined()) return;
  const float* w = weight_.data_ptr<float>();
  if (winograd()) {
    packed_ = floats(winograd_weights_size(size(in_), size(out_)));
    parallel(size(in_), [&](std::size_t begin, std::size_t end) {
      winograd_weights(w, size(out_), size(in_), packed_.data_ptr<float>(), begin, end);
    });
  } else {
    const Direct op = direct_op(1);
    packed_ = floats(direct_weights_size(op));
    direct_weights(op, w, packed_.data_ptr<float>());
  }
}

void Conv::pack_backward() {
  const float* w = weight_.data_ptr<float>();
  if (winograd() && !packed_backward_.defined()) {
    packed_backward_ = floats(winograd_weights_size(size(out_), size(in_)));
    parallel(size(out_), [&](std::size_t begin, std::size_t end) {
      winograd_weights_backward(w, size(out_), size(in_), packed_backward_.data_ptr<float>(), begin,
                                end);
    });
  } else if (!winograd() && !direct_backward_) {
    direct_backward_.emplace(direct_op(1), w);
  }
}

void Conv::forward(int64_t count, const Source& x, const float* bias, float* y, const Tensor& norm,
                   int64_t image) {
  pack();
  const float* packed = packed_.data_ptr<float>();
  Tensor moments;
  std::vector<std::size_t> pixels;  // of each unit of a map
  auto prepare = [&](std::size_t units_each) {
    if (!norm.defined()) return static_cast<float*>(nullptr);
    pixels.resize(units_each);
    moments = floats(size(count) * units_each * moments_size(size(out_)));
    return moments.data_ptr<float>();
  };
  if (winograd()) {
    TORCH_CHECK(!bias, "a 3x3 convolution of stride 1 takes no bias here");
    const Winograd op = winograd_op(count);
    const WinogradResult result{.data = y, .moments = prepare(op.units_each())};
    for (std::size_t u = 0; u < pixels.size(); ++u) pixels[u] = op.unit_pixels(u);
    parallel(op.units(), [&](std::size_t begin, std::size_t end) {
      winograd_forward(op, x, packed, result, begin, end);
    });
  } else {
    const Direct op = direct_op(count);
    float* sets = prepare(op.out_height);
    std::fill(pixels.begin(), pixels.end(), op.out_width);
    parallel(op.units(), [&](std::size_t begin, std::size_t end) {
      direct_forward(op, x, packed, bias, y, sets, begin, end);
    });
  }
  if (!norm.defined()) return;
  const int64_t maps = norm.size(1);
  float* mean = norm.data_ptr<float>() + image * out_;
  parallel(size(count), [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      merge_moments(moments.data_ptr<float>() + i * pixels.size() * moments_size(size(out_)),
                    pixels.data(), pixels.size(), size(out_), mean + i * size(out_),
                    mean + (size(maps) + i) * size(out_));
  });
}

void Conv::run_backward(int64_t count, const float* dy, const WinogradResult& result, bool add) {
  pack_backward();
  if (winograd()) {
    const Winograd op = winograd_backward_op(count);
    parallel(op.units(), [&](std::size_t begin, std::size_t end) {
      winograd_forward(op, {dy}, packed_backward_.data_ptr<float>(), result, begin, end);
    });
    return;
  }
  direct_backward_->op.batch = size(count);
  parallel(direct_backward_->op.input_units(), [&](std::size_t begin, std::size_t end) {
    direct_backward(*direct_backward_, dy, add, result.data, begin, end);
  });
}

void Conv::backward(int64_t count, const float* dy, float* dx, const Addition& addition) {
  TORCH_CHECK(winograd() || !addition.data, "only a 3x3 convolution of stride 1 adds");
  run_backward(count, dy, {.data = dx, .add = addition.data, .gate = addition.gate}, false);
}

void Conv::add_backward(int64_t count, const float* dy, float* dx) {
  run_backward(count, dy, {.data = dx, .add = dx}, true);
}

void Conv::backward_through_norm(int64_t count, const float* dy, const Source& before,
                                 float* d_before) {
  const Pixels maps{size(count), size(height_ * width_), size(in_)};
  if (!winograd()) {
    run_backward(count, dy, {.data = d_before}, false);
    run_norm_backward(count, in_, height_ * width_, {.dz = d_before, .y = before}, d_before);
    return;
  }
  const std::size_t units = winograd_backward_op(count).units_each();
  const Tensor sums = floats(size(count) * units * moments_size(size(in_)));
  run_backward(count, dy, {.data = d_before, .before = before, .sums = sums.data_ptr<float>()},
               false);
  const Tensor means = merged_sums(sums, maps.batch, units, maps.channels, maps.pixels);
  // Cut already where the ReLU was zero.
  const NormBackward rest{.dz = d_before, .y = before, .relu = false};
  parallel(maps.units(), [&](std::size_t begin, std::size_t end) {
    norm_backward(maps, rest, means.data_ptr<float>(), d_before, begin, end);
  });
}

void Conv::add_weights_gradient(int64_t count, const Source& x, const float* dy) {
  const auto run = [&](std::size_t each, std::size_t units, const auto& kernel) {
    const bool first = !sums_.defined();
    if (first) sums_ = torch::empty({range_count(), static_cast<int64_t>(each)}, torch::kFloat);
    for_ranges(sums_.size(0), units, [&](std::size_t begin, std::size_t end, int64_t range) {
      float* set = sums_.data_ptr<float>() + range * sums_.size(1);
      if (first) std::fill(set, set + each, 0.0f);
      if (begin < end) kernel(set, begin, end);
    });
  };
  if (winograd()) {
    const Winograd op = winograd_op(count, /*for_weights=*/true);
    run(winograd_sums_size(op.in, op.out), op.units(),
        [&](float* set, std::size_t begin, std::size_t end) {
          winograd_weights_gradient(op, x, dy, set, begin, end);
        });
  } else {
    const Direct op = direct_op(count);
    run(direct_sums_size(op), op.units(), [&](float* set, std::size_t begin, std::size_t end) {
      direct_weights_gradient(op, x, dy, set, begin, end);
    });
  }
}

Tensor Conv::weights_gradient() {
  if (!sums_.defined()) return torch::zeros_like(weight_);  // no maps
  if (winograd()) {
    Tensor result = torch::empty_like(weight_);
    winograd_finish_gradient(sums_.data_ptr<float>(), size(sums_.size(0)), size(out_), size(in_),
                             result.data_ptr<float>());
    return result;
  }
  const auto wide = static_cast<int64_t>(tokens::padded(size(out_)));
  return sums_.sum(0)
      .view({kernel_, kernel_, in_, wide})
      .narrow(3, 0, out_)
      .permute({3, 2, 0, 1})
      .contiguous();
}

void run_activate(int64_t count, int64_t channels, int64_t pixels, const Source& y, float* out) {
  const Pixels maps{size(count), size(pixels), size(channels)};
  parallel(maps.units(),
           [&](std::size_t begin, std::size_t end) { activate(maps, y, out, begin, end); });
}

void run_add_residual(int64_t count, int64_t channels, int64_t pixels, const Source& y,
                      const Source& shortcut, float* out) {
  const Pixels maps{size(count), size(pixels), size(channels)};
  parallel(maps.units(), [&](std::size_t begin, std::size_t end) {
    add_residual(maps, y, shortcut, out, begin, end);
  });
}

void run_norm_backward(int64_t count, int64_t channels, int64_t pixels, const NormBackward& in,
                       float* dy) {
  const Pixels maps{size(count), size(pixels), size(channels)};
  const Tensor sums = floats(maps.units() * moments_size(maps.channels));
  parallel(maps.units(), [&](std::size_t begin, std::size_t end) {
    norm_backward_sums(maps, in, sums.data_ptr<float>(), begin, end);
  });
  const Tensor means = merged_sums(sums, maps.batch, maps.units_each(), maps.channels, maps.pixels);
  parallel(maps.units(), [&](std::size_t begin, std::size_t end) {
    norm_backward(maps, in, means.data_ptr<float>(), dy, begin, end);
  });
}

Tensor run_channel_sums(int64_t count, int64_t channels, int64_t pixels, const float* x) {
  const Pixels maps{size(count), size(pixels), size(channels)};
  const Tensor sums = floats(maps.units() * maps.channels);
  parallel(maps.units(), [&](std::size_t begin, std::size_t end) {
    channel_sums(maps, x, sums.data_ptr<float>(), begin, end);
  });
  return sums.view({-1, channels}).sum(0);
}

}  // namespace nmrf::conv
