#include "train/ops/token_mlp.h"

#include "kernels/pack.h"
#include "kernels/token_mlp.h"
#include "train/ops/dispatch.h"
#include "train/ops/memory.h"
#include "train/ops/token_rows.h"

namespace nmrf::ops {
namespace {

using tokens::Activation;
using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
constexpr int kMostLayers = tokens::TokenMlp::kMostLayers;

// Everything an MLP reads, as tensors: see tokens::TokenMlp.
struct Inputs {
  Tensor x{}, message{}, entry_weight{}, entry_bias{}, norm_weight{}, norm_bias{};
  Tensor weight[kMostLayers] = {}, bias[kMostLayers] = {};
  int layers = 0;
  Activation activation = Activation::kGelu;
  bool residual = false;

  std::vector<Tensor> tensors() const {
    std::vector<Tensor> all{x, message, entry_weight, entry_bias, norm_weight, norm_bias};
    for (int i = 0; i < layers; ++i) all.insert(all.end(), {weight[i], bias[i]});
    return all;
  }
};

// A prepared call: tensors seen as rows, weights packed.
struct Prepared {
  Prepared(const Inputs& in, bool backward)
      : x(tokens::rows_of(in.x)), packing(floats(in, backward)) {
    mlp.layers = in.layers;
    mlp.activation = in.activation;
    mlp.residual = in.residual;
    mlp.width[0] = static_cast<std::size_t>(in.x.size(-1));
    for (int i = 0; i < in.layers; ++i)
      mlp.width[i + 1] = static_cast<std::size_t>(in.weight[i].size(0));
    if (in.norm_weight.defined()) {
      norm_weight = in.norm_weight.contiguous();
      norm_bias = in.norm_bias.contiguous();
      mlp.norm_weight = norm_weight.data_ptr<float>();
      mlp.norm_bias = norm_bias.data_ptr<float>();
      mlp.norm_eps = static_cast<float>(tokens::kNormEps);
    }
    if (in.message.defined()) {
      message = tokens::rows_of(in.message);
      mlp.message_width = static_cast<std::size_t>(in.message.size(-1));
      mlp.entry_forward = forward(in.entry_weight);
      mlp.entry_bias = bias(in.entry_bias, mlp.width[0]);
      if (backward) mlp.entry_backward = rows(in.entry_weight);
    }
    for (int i = 0; i < in.layers; ++i) {
      mlp.bias[i] = bias(in.bias[i], mlp.width[i + 1]);
      // The last product is not computed again.
      if (!backward || i + 1 < in.layers) mlp.forward[i] = forward(in.weight[i]);
      if (backward) mlp.backward[i] = rows(in.weight[i]);
    }
  }

  tokens::TokenMlp mlp;
  Tensor x, message, norm_weight, norm_bias;

 private:
  static std::size_t floats(const Inputs& in, bool backward) {
    std::size_t sum = 0;
    auto add = [&](const Tensor& weight) {
      const auto out = static_cast<std::size_t>(weight.size(0)),
                 wide = static_cast<std::size_t>(weight.size(1));
      sum += tokens::padded(out) + tokens::packed_size(wide, out) +
             (backward ? tokens::packed_size(out, wide) : 0);
    };
    if (in.message.defined()) add(in.entry_weight);
    for (int i = 0; i < in.layers; ++i) add(in.weight[i]);
    return sum;
  }
  const float* forward(const Tensor& given) {
    const Tensor weight = given.contiguous();
    const auto out = static_cast<std::size_t>(weight.size(0)),
               wide = static_cast<std::size_t>(weight.size(1));
    float* packed = packing.take(tokens::packed_size(wide, out));
    tokens::share_packing(weight.data_ptr<float>(), wide, wide, out, wide, 0, packed);
    return packed;
  }
  const float* rows(const Tensor& given) {
    const Tensor weight = given.contiguous();
    const auto out = static_cast<std::size_t>(weight.size(0)),
               wide = static_cast<std::size_t>(weight.size(1));
    float* packed = packing.take(tokens::packed_size(out, wide));
    tokens::pack_rows(weight.data_ptr<float>(), wide, out, wide, packed);
    return packed;
  }
  const float* bias(const Tensor& given, std::size_t size) {
    const Tensor values = given.defined() ? given.contiguous() : Tensor();
    float* packed = packing.take(tokens::padded(size));
    tokens::pack_bias(tokens::data_or_null(values), size, packed);
    return packed;
  }

  tokens::Packing packing;
};

Tensor run_forward(const Inputs& in) {
  Prepared call(in, /*backward=*/false);
  auto sizes = in.x.sizes().vec();
  sizes.back() = in.weight[in.layers - 1].size(0);
  auto result = empty_floats(sizes);
  const tokens::OutputRows y{result.data_ptr<float>(), static_cast<std::size_t>(sizes.back())};
  tokens::share_rows(call.x.size(0), 1, [&](std::size_t begin, std::size_t end) {
    tokens::token_mlp_forward(call.mlp, tokens::input_rows(call.x),
                              tokens::input_rows(call.message), y, begin, end);
  });
  return result;
}

struct Gradients {
  Tensor x, message, entry_weight, entry_bias, norm_weight, norm_bias;
  Tensor weight[kMostLayers], bias[kMostLayers];
};

Gradients run_backward(const Inputs& in, const Tensor& above, bool to_x, bool to_message,
                       bool to_parameters) {
  Prepared call(in, /*backward=*/true);
  Gradients result;
  tokens::OutputRows dx, d_message;
  if (to_x || in.message.defined()) {
    result.x = empty_floats(in.x.sizes());
    dx = {result.x.data_ptr<float>(), call.mlp.width[0]};
  }
  if (to_message) {
    result.message = empty_floats(in.message.sizes());
    d_message = {result.message.data_ptr<float>(), call.mlp.message_width};
  }
  const Tensor dy = tokens::rows_of(above);
  const int64_t count = call.x.size(0), ranges = tokens::range_count(count);
  const tokens::TokenMlpSums at(call.mlp);
  tokens::GradientSums sums(to_parameters ? ranges : 0, at.total);
  tokens::for_ranges(count, 1, ranges, [&](std::size_t begin, std::size_t end, int64_t range) {
    tokens::token_mlp_backward(call.mlp, tokens::input_rows(call.x),
                               tokens::input_rows(call.message), tokens::input_rows(dy), dx,
                               d_message, to_parameters ? sums.begin(range) : nullptr, begin, end);
  });
  if (!to_parameters) return result;
  sums.finish();
  auto weight_of = [&](std::size_t place, const Tensor& like) {
    return sums.matrix(place, like.size(0), like.size(1)).contiguous();
  };
  auto bias_of = [&](std::size_t place, const Tensor& like) {
    return like.defined() ? sums.vector(place, like.size(0)) : Tensor();
  };
  for (int i = 0; i < in.layers; ++i) {
    result.weight[i] = weight_of(at.weight[i], in.weight[i]);
    result.bias[i] = bias_of(at.bias[i], in.bias[i]);
  }
  result.norm_weight = bias_of(at.norm_weight, in.norm_weight);
  result.norm_bias = bias_of(at.norm_bias, in.norm_bias);
  if (in.message.defined()) {
    result.entry_weight = weight_of(at.entry_weight, in.entry_weight);
    result.entry_bias = bias_of(at.entry_bias, in.entry_bias);
  }
  return result;
}

struct MlpFunction : torch::autograd::Function<MlpFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& message,
                        const Tensor& entry_weight, const Tensor& entry_bias,
                        const Tensor& norm_weight, const Tensor& norm_bias, const Tensor& w0,
                        const Tensor& b0, const Tensor& w1, const Tensor& b1, const Tensor& w2,
                        const Tensor& b2, int64_t layers, bool gelu, bool residual) {
    const variable_list all{x,  message, entry_weight, entry_bias, norm_weight, norm_bias,
                            w0, b0,      w1,           b1,         w2,          b2};
    context->save_for_backward(all);
    context->saved_data["layers"] = layers;
    context->saved_data["gelu"] = gelu;
    context->saved_data["residual"] = residual;
    return run_forward(inputs(all, layers, gelu, residual));
  }

  static variable_list backward(AutogradContext* context, const variable_list& above) {
    auto in =
        inputs(context->get_saved_variables(), context->saved_data["layers"].toInt(),
               context->saved_data["gelu"].toBool(), context->saved_data["residual"].toBool());
    bool to_parameters = false;
    for (std::size_t i = 2; i < 12; ++i)
      to_parameters = to_parameters || context->needs_input_grad(i);
    auto g = run_backward(in, above[0], context->needs_input_grad(0), context->needs_input_grad(1),
                          to_parameters);
    return {g.x,         g.message,   g.entry_weight, g.entry_bias, g.norm_weight,
            g.norm_bias, g.weight[0], g.bias[0],      g.weight[1],  g.bias[1],
            g.weight[2], g.bias[2],   Tensor(),       Tensor(),     Tensor()};
  }

 private:
  static Inputs inputs(const variable_list& all, int64_t layers, bool gelu, bool residual) {
    auto at = [&](std::size_t i) { return tokens::unless_stand_in(all[i]); };
    Inputs in{at(0), at(1), at(2), at(3), at(4), at(5)};
    in.layers = static_cast<int>(layers);
    for (int i = 0; i < in.layers; ++i) {
      in.weight[i] = at(6 + 2 * i);
      in.bias[i] = at(7 + 2 * i);
    }
    in.activation = gelu ? Activation::kGelu : Activation::kRelu;
    in.residual = residual;
    return in;
  }
};

// The plain form.
Tensor run_plain(const Inputs& in) {
  auto u = in.message.defined() ? in.x + torch::linear(in.message, in.entry_weight, in.entry_bias)
                                : in.x;
  auto y = in.norm_weight.defined()
               ? torch::layer_norm(u, {u.size(-1)}, in.norm_weight, in.norm_bias, tokens::kNormEps)
               : u;
  for (int i = 0; i < in.layers; ++i) {
    y = torch::linear(y, in.weight[i], in.bias[i]);
    if (i + 1 < in.layers) y = in.activation == Activation::kGelu ? torch::gelu(y) : y.relu();
  }
  return in.residual ? u + y : y;
}

Tensor run(const Inputs& in) {
  int64_t wide = in.x.size(-1);
  if (in.message.defined())
    TORCH_CHECK(
        in.message.dim() == in.x.dim() && in.entry_weight.size(0) == wide &&
            in.entry_weight.size(1) == in.message.size(-1) &&
            in.message.sizes().slice(0, in.x.dim() - 1) == in.x.sizes().slice(0, in.x.dim() - 1),
        "message, weight and x do not fit");
  for (int i = 0; i < in.layers; ++i) {
    TORCH_CHECK(in.weight[i].size(1) == wide, "a layer's weight does not fit its input");
    wide = in.weight[i].size(0);
  }
  TORCH_CHECK(!in.residual || wide == in.x.size(-1), "a residual needs as many channels out as in");

  bool fast = true, gradient = false;
  for (const Tensor& t : in.tensors()) {
    fast = fast && (!t.defined() || use_fast(t));
    gradient = gradient || (t.defined() && t.requires_grad());
  }
  if (!fast) return run_plain(in);
  if (!gradient || !torch::GradMode::is_enabled()) return run_forward(in);
  auto given = tokens::or_stand_in;
  return MlpFunction::apply(in.x, given(in.message), given(in.entry_weight), given(in.entry_bias),
                            given(in.norm_weight), given(in.norm_bias), in.weight[0],
                            given(in.bias[0]), in.weight[1], given(in.bias[1]), given(in.weight[2]),
                            given(in.bias[2]), static_cast<int64_t>(in.layers),
                            in.activation == Activation::kGelu, in.residual);
}

void add_layer(Inputs& in, const LinearWeights& layer) {
  in.weight[in.layers] = layer.weight;
  in.bias[in.layers] = layer.bias;
  ++in.layers;
}

}  // namespace

Tensor mlp(const Tensor& x, const LinearWeights& fc1, const LinearWeights& fc2) {
  Inputs in{.x = x};
  add_layer(in, fc1);
  add_layer(in, fc2);
  return run(in);
}

Tensor mlp_residual(const Tensor& x, const NormWeights& norm, const LinearWeights& fc1,
                    const LinearWeights& fc2) {
  Inputs in{.x = x, .norm_weight = norm.weight, .norm_bias = norm.bias};
  add_layer(in, fc1);
  add_layer(in, fc2);
  in.residual = true;
  return run(in);
}

Tensor message_mlp_residual(const Tensor& x, const Tensor& message, const LinearWeights& entry,
                            const NormWeights& norm, const LinearWeights& fc1,
                            const LinearWeights& fc2) {
  Inputs in{.x = x,
            .message = message,
            .entry_weight = entry.weight,
            .entry_bias = entry.bias,
            .norm_weight = norm.weight,
            .norm_bias = norm.bias};
  add_layer(in, fc1);
  add_layer(in, fc2);
  in.residual = true;
  return run(in);
}

Tensor relu_mlp(const Tensor& x, const LinearWeights& first, const LinearWeights& second,
                const LinearWeights& last) {
  Inputs in{.x = x};
  add_layer(in, first);
  add_layer(in, second);
  add_layer(in, last);
  in.activation = Activation::kRelu;
  return run(in);
}

}  // namespace nmrf::ops
