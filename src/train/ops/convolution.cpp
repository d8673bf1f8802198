#include "train/ops/convolution.h"

#include <ATen/Parallel.h>

#include "train/ops/conv_steps.h"
#include "train/ops/dispatch.h"
#include "train/ops/token_rows.h"

namespace nmrf::ops {
namespace {

using conv::channels_last;
using conv::Conv;
using conv::empty_norm;
using conv::map_at;
using conv::norm_at;
using conv::NormBackward;
using conv::Source;
using tokens::or_stand_in;
using tokens::unless_stand_in;
using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Plain forms.

Tensor plain_conv(const Tensor& x, const ConvWeights& c) {
  return torch::conv2d(x, c.weight, c.bias, c.stride, c.weight.size(2) / 2);
}

Tensor plain_norm(const Tensor& x) {
  return torch::instance_norm(x, {}, {}, {}, {}, /*use_input_stats=*/true, 0.0, 1e-5, false);
}

Conv conv_of(const Tensor& weight, int64_t stride, const Tensor& x) {
  return {weight, stride, x.size(2), x.size(3)};
}

// The maps a convolution gives for those of x.
Tensor results_of(const Conv& c, int64_t batch) {
  return empty_map(batch, c.out(), c.out_height(), c.out_width());
}

// Memory for the gradient of maps.
Tensor gradient_like(const Tensor& x) {
  return empty_map(x.size(0), x.size(1), x.size(2), x.size(3));
}

Tensor zeros_if(bool wanted, const Tensor& like) {
  return wanted ? torch::zeros_like(like) : Tensor();
}

template <class... T>
bool wants_gradient(const T&... tensors) {
  return torch::GradMode::is_enabled() && ((tensors.defined() && tensors.requires_grad()) || ...);
}

template <class... T>
bool all_fast(const T&... tensors) {
  return ((!tensors.defined() || use_fast(tensors)) && ...);
}

void check_conv(const Tensor& x, const ConvWeights& c) {
  TORCH_CHECK(x.dim() == 4 && c.weight.dim() == 4 && c.weight.size(1) == x.size(1),
              "maps [B, C, h, w] and a weight of their channels");
  TORCH_CHECK(c.weight.size(2) == c.weight.size(3) && c.weight.size(2) % 2 == 1 && c.stride >= 1,
              "a square kernel of odd size");
}

// A convolution.

Tensor run_conv(const Tensor& x, const Tensor& weight, const Tensor& bias, int64_t stride) {
  Conv c = conv_of(weight, stride, x);
  Tensor y = results_of(c, x.size(0)), padded;
  if (bias.defined()) {
    padded = torch::zeros({static_cast<int64_t>(tokens::padded(bias.size(0)))}, torch::kFloat);
    padded.narrow(0, 0, bias.size(0)).copy_(bias);
  }
  c.forward(x.size(0), {map_at(x, 0)}, tokens::data_or_null(padded), map_at(y, 0));
  return y;
}

struct ConvFunction : torch::autograd::Function<ConvFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& input, const Tensor& weight,
                        const Tensor& bias, int64_t stride) {
    const Tensor x = channels_last(input);
    context->save_for_backward({x, weight});
    context->saved_data["stride"] = stride;
    return run_conv(x, weight, unless_stand_in(bias), stride);
  }

  static variable_list backward(AutogradContext* context, const variable_list& above) {
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1], dy = channels_last(above[0]);
    Conv c = conv_of(weight, context->saved_data["stride"].toInt(), x);
    Tensor dx, dw, db;
    if (context->needs_input_grad(0)) {
      dx = gradient_like(x);
      c.backward(x.size(0), map_at(dy, 0), map_at(dx, 0), {});
    }
    if (context->needs_input_grad(1)) {
      c.add_weights_gradient(x.size(0), {map_at(x, 0)}, map_at(dy, 0));
      dw = c.weights_gradient();
    }
    if (context->needs_input_grad(2))
      db = conv::run_channel_sums(dy.size(0), dy.size(1), dy.size(2) * dy.size(3), map_at(dy, 0));
    return {dx, dw, db, Tensor()};
  }
};

// relu(norm(conv(x))): y and its norm are kept, or y is the result's memory.

struct Normed {
  Tensor y, norm;
};

Tensor run_conv_norm_relu(const Tensor& x, const Tensor& weight, int64_t stride, Normed* kept) {
  Conv c = conv_of(weight, stride, x);
  const int64_t batch = x.size(0), pixels = c.out_height() * c.out_width();
  Tensor result = results_of(c, batch), norm = empty_norm(batch, c.out());
  const Tensor y = kept ? results_of(c, batch) : result;
  conv::for_groups(result, [&](int64_t first, int64_t count) {
    c.forward(count, {map_at(x, first)}, nullptr, map_at(y, first), norm, first);
    conv::run_activate(count, c.out(), pixels, {map_at(y, first), norm_at(norm, first)},
                       map_at(result, first));
  });
  if (kept) *kept = {y, norm};
  return result;
}

struct ConvNormReluFunction : torch::autograd::Function<ConvNormReluFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& input, const Tensor& weight,
                        const Tensor& bias, int64_t stride) {
    const Tensor x = channels_last(input);
    Normed kept;
    Tensor result = run_conv_norm_relu(x, weight, stride, &kept);
    context->save_for_backward({x, weight, bias, kept.y, kept.norm});
    context->saved_data["stride"] = stride;
    return result;
  }

  static variable_list backward(AutogradContext* context, const variable_list& above) {
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1], &y = saved[3], &norm = saved[4];
    const Tensor dz = channels_last(above[0]);
    Conv c = conv_of(weight, context->saved_data["stride"].toInt(), x);
    const int64_t pixels = y.size(2) * y.size(3);
    const bool to_x = context->needs_input_grad(0), to_weight = context->needs_input_grad(1);
    Tensor dx = to_x ? gradient_like(x) : Tensor(), dy;
    conv::for_groups(y, [&](int64_t first, int64_t count) {
      if (!dy.defined()) dy = results_of(c, count);
      conv::run_norm_backward(
          count, c.out(), pixels,
          {.dz = map_at(dz, first), .y = {map_at(y, first), norm_at(norm, first)}}, map_at(dy, 0));
      if (to_weight) c.add_weights_gradient(count, {map_at(x, first)}, map_at(dy, 0));
      if (to_x) c.backward(count, map_at(dy, 0), map_at(dx, first), {});
    });
    return {dx, to_weight ? c.weights_gradient() : Tensor(),
            zeros_if(context->needs_input_grad(2), saved[2]), Tensor()};
  }
};

// A residual block.

struct BlockWeights {
  Tensor first, second, past;  // past: undefined, the shortcut is x
  int64_t stride;
};

struct BlockState {
  Normed first, second, past;
};

Tensor run_block(const Tensor& x, const BlockWeights& w, BlockState* kept) {
  Conv first = conv_of(w.first, w.stride, x);
  const int64_t batch = x.size(0), out = first.out();
  const int64_t h = first.out_height(), width = first.out_width();
  Conv second(w.second, 1, h, width);
  std::optional<Conv> past;
  if (w.past.defined()) past.emplace(conv_of(w.past, w.stride, x));
  Tensor result = empty_map(batch, out, h, width);
  BlockState state;
  for (auto* normed : {&state.first, &state.second, &state.past}) {
    if (normed == &state.past && !past) continue;
    normed->norm = empty_norm(batch, out);
    if (kept) normed->y = empty_map(batch, out, h, width);
  }
  if (!kept) state.second.y = result;
  conv::for_groups(result, [&](int64_t image, int64_t count) {
    if (!kept && !state.first.y.defined()) {  // of one group; the first is the largest
      state.first.y = empty_map(count, out, h, width);
      if (past) state.past.y = empty_map(count, out, h, width);
    }
    const int64_t at = kept ? image : 0;
    float* y1 = map_at(state.first.y, at);
    first.forward(count, {map_at(x, image)}, nullptr, y1, state.first.norm, image);
    Source shortcut{map_at(x, image)};
    if (past) {
      shortcut.data = map_at(state.past.y, at);
      past->forward(count, {map_at(x, image)}, nullptr, map_at(state.past.y, at), state.past.norm,
                    image);
      shortcut.norm = norm_at(state.past.norm, image);
    }
    float* y2 = map_at(state.second.y, image);
    second.forward(count, {y1, norm_at(state.first.norm, image)}, nullptr, y2, state.second.norm,
                   image);
    conv::run_add_residual(count, out, h * width, {y2, norm_at(state.second.norm, image)}, shortcut,
                           map_at(result, image));
  });
  if (kept) *kept = state;
  return result;
}

struct BlockGradients {
  Tensor x, first, second, past;
};

BlockGradients run_block_backward(const Tensor& x, const BlockWeights& w, const BlockState& state,
                                  const Tensor& z, const Tensor& dz, bool to_x, bool to_weights) {
  Conv first = conv_of(w.first, w.stride, x), second(w.second, 1, z.size(2), z.size(3));
  std::optional<Conv> past;
  if (w.past.defined()) past.emplace(conv_of(w.past, w.stride, x));
  const int64_t out = z.size(1), h = z.size(2), width = z.size(3);
  BlockGradients result;
  if (to_x) result.x = gradient_like(x);
  Tensor dy1, dy2;  // of one group
  conv::for_groups(z, [&](int64_t image, int64_t count) {
    if (!dy1.defined()) {
      dy1 = empty_map(count, out, h, width);
      dy2 = empty_map(count, out, h, width);
    }
    const Source y1{map_at(state.first.y, image), norm_at(state.first.norm, image)};
    const Source y2{map_at(state.second.y, image), norm_at(state.second.norm, image)};
    float *d1 = map_at(dy1, 0), *d2 = map_at(dy2, 0);
    const float *above = map_at(dz, image), *gate = map_at(z, image);
    conv::run_norm_backward(count, out, h * width, {.dz = above, .gate = gate, .y = y2}, d2);
    if (to_weights) second.add_weights_gradient(count, y1, d2);
    second.backward_through_norm(count, d2, y1, d1);
    const float* input = map_at(x, image);
    if (to_weights) first.add_weights_gradient(count, {input}, d1);
    float* dx = to_x ? map_at(result.x, image) : nullptr;
    if (to_x && past) first.backward(count, d1, dx, {});
    if (to_x && !past) first.backward(count, d1, dx, {above, gate});
    if (!past) return;
    const Source yp{map_at(state.past.y, image), norm_at(state.past.norm, image)};
    conv::run_norm_backward(count, out, h * width,
                            {.dz = above, .gate = gate, .y = yp, .relu = false}, d2);
    if (to_weights) past->add_weights_gradient(count, {input}, d2);
    if (to_x) past->add_backward(count, d2, dx);
  });
  if (!to_weights) return result;
  result.first = first.weights_gradient();
  result.second = second.weights_gradient();
  if (past) result.past = past->weights_gradient();
  return result;
}

struct BlockFunction : torch::autograd::Function<BlockFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& input, const Tensor& first,
                        const Tensor& second, const Tensor& past, const Tensor& past_bias,
                        int64_t stride) {
    const Tensor x = channels_last(input);
    BlockState state;
    Tensor z = run_block(x, {first, second, unless_stand_in(past), stride}, &state);
    context->save_for_backward({x, first, second, past, past_bias, z, state.first.y,
                                state.first.norm, state.second.y, state.second.norm,
                                or_stand_in(state.past.y), or_stand_in(state.past.norm)});
    context->saved_data["stride"] = stride;
    return z;
  }

  static variable_list backward(AutogradContext* context, const variable_list& above) {
    const auto saved = context->get_saved_variables();
    const BlockWeights weights{saved[1], saved[2], unless_stand_in(saved[3]),
                               context->saved_data["stride"].toInt()};
    const BlockState state{{saved[6], saved[7]}, {saved[8], saved[9]}, {saved[10], saved[11]}};
    const bool to_weights = context->needs_input_grad(1) || context->needs_input_grad(2) ||
                            context->needs_input_grad(3);
    auto g = run_block_backward(saved[0], weights, state, saved[5], channels_last(above[0]),
                                context->needs_input_grad(0), to_weights);
    return {g.x,     g.first, g.second, g.past, zeros_if(context->needs_input_grad(4), saved[4]),
            Tensor()};
  }
};

// last(relu(norm(first(x))))

Tensor run_projection(const Tensor& x, const Tensor& w1, int64_t stride, const Tensor& w2,
                      Normed* kept) {
  Conv first = conv_of(w1, stride, x);
  const int64_t batch = x.size(0);
  Conv last(w2, 1, first.out_height(), first.out_width());
  Tensor result = results_of(last, batch), norm = empty_norm(batch, first.out()), y;
  if (kept) y = results_of(first, batch);
  conv::for_groups(result, [&](int64_t image, int64_t count) {
    if (!y.defined()) y = results_of(first, count);
    float* values = map_at(y, kept ? image : 0);
    first.forward(count, {map_at(x, image)}, nullptr, values, norm, image);
    last.forward(count, {values, norm_at(norm, image)}, nullptr, map_at(result, image));
  });
  if (kept) *kept = {y, norm};
  return result;
}

struct ProjectionFunction : torch::autograd::Function<ProjectionFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& input, const Tensor& w1,
                        const Tensor& w2, int64_t stride) {
    const Tensor x = channels_last(input);
    Normed kept;
    Tensor result = run_projection(x, w1, stride, w2, &kept);
    context->save_for_backward({x, w1, w2, kept.y, kept.norm});
    context->saved_data["stride"] = stride;
    return result;
  }

  static variable_list backward(AutogradContext* context, const variable_list& above) {
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &w1 = saved[1], &w2 = saved[2], &y = saved[3], &norm = saved[4];
    const Tensor dz = channels_last(above[0]);
    Conv first = conv_of(w1, context->saved_data["stride"].toInt(), x);
    Conv last(w2, 1, y.size(2), y.size(3));
    const bool to_x = context->needs_input_grad(0), to_first = context->needs_input_grad(1),
               to_last = context->needs_input_grad(2);
    Tensor dx = to_x ? gradient_like(x) : Tensor(), dy;
    conv::for_groups(y, [&](int64_t image, int64_t count) {
      const Source source{map_at(y, image), norm_at(norm, image)};
      if (to_last) last.add_weights_gradient(count, source, map_at(dz, image));
      if (!to_x && !to_first) return;
      if (!dy.defined()) dy = results_of(first, count);
      last.backward_through_norm(count, map_at(dz, image), source, map_at(dy, 0));
      if (to_first) first.add_weights_gradient(count, {map_at(x, image)}, map_at(dy, 0));
      if (to_x) first.backward(count, map_at(dy, 0), map_at(dx, image), {});
    });
    return {dx, to_first ? first.weights_gradient() : Tensor(),
            to_last ? last.weights_gradient() : Tensor(), Tensor()};
  }
};

}  // namespace

Tensor convolve(const Tensor& x, const ConvWeights& c) {
  check_conv(x, c);
  // The 3x3 kernel has no place for a bias: nothing in the network asks for one there.
  const bool bias_fits = !c.bias.defined() || c.weight.size(2) != 3 || c.stride != 1;
  if (!all_fast(x, c.weight, c.bias) || !bias_fits) return plain_conv(x, c);
  if (!wants_gradient(x, c.weight, c.bias))
    return run_conv(channels_last(x), c.weight, c.bias, c.stride);
  return ConvFunction::apply(x, c.weight, or_stand_in(c.bias), c.stride);
}

Tensor conv_norm_relu(const Tensor& x, const ConvWeights& c) {
  check_conv(x, c);
  if (!all_fast(x, c.weight, c.bias)) return plain_norm(plain_conv(x, c)).relu();
  if (!wants_gradient(x, c.weight, c.bias))
    return run_conv_norm_relu(channels_last(x), c.weight, c.stride, nullptr);
  return ConvNormReluFunction::apply(x, c.weight, or_stand_in(c.bias), c.stride);
}

Tensor residual_block(const Tensor& x, const ConvWeights& first, const ConvWeights& second,
                      const ConvWeights& past) {
  check_conv(x, first);
  TORCH_CHECK(!first.bias.defined() && !second.bias.defined() && second.stride == 1,
              "convolutions without bias, the second of stride 1");
  TORCH_CHECK(past.weight.defined() ? past.stride == first.stride
                                    : first.stride == 1 && first.weight.size(0) == x.size(1),
              "the shortcut must fit the block");
  if (!all_fast(x, first.weight, second.weight, past.weight, past.bias)) {
    auto y = plain_norm(plain_conv(x, first)).relu();
    y = plain_norm(plain_conv(y, second)).relu();
    auto shortcut = past.weight.defined() ? plain_norm(plain_conv(x, past)) : x;
    return (shortcut + y).relu();
  }
  if (!wants_gradient(x, first.weight, second.weight, past.weight, past.bias))
    return run_block(channels_last(x), {first.weight, second.weight, past.weight, first.stride},
                     nullptr);
  return BlockFunction::apply(x, first.weight, second.weight, or_stand_in(past.weight),
                              or_stand_in(past.bias), first.stride);
}

Tensor conv_norm_relu_conv(const Tensor& x, const ConvWeights& first, const ConvWeights& last) {
  check_conv(x, first);
  TORCH_CHECK(
      !first.bias.defined() && !last.bias.defined() && last.stride == 1 && last.weight.size(2) == 1,
      "convolutions without bias, the last 1x1 of stride 1");
  if (!all_fast(x, first.weight, last.weight))
    return plain_conv(plain_norm(plain_conv(x, first)).relu(), last);
  if (!wants_gradient(x, first.weight, last.weight))
    return run_projection(channels_last(x), first.weight, first.stride, last.weight, nullptr);
  return ProjectionFunction::apply(x, first.weight, last.weight, first.stride);
}

}  // namespace nmrf::ops
