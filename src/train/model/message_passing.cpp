#include "train/model/message_passing.h"

namespace nmrf::train {
namespace {

torch::nn::LayerNorm layer_norm(int64_t channels) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({channels}));
}

}  // namespace

SelfEdgesStepImpl::SelfEdgesStepImpl(int64_t channels, int64_t encoding, int64_t heads)
    : heads_(heads),
      norm1_(register_module("norm1", layer_norm(channels))),
      q_(register_module("q", torch::nn::Linear(channels + encoding, channels))),
      k_(register_module("k", torch::nn::Linear(channels + encoding, channels))),
      v_(register_module("v", torch::nn::Linear(channels, channels))),
      proj_(register_module("proj", torch::nn::Linear(channels, channels))) {}

torch::Tensor SelfEdgesStepImpl::forward(const torch::Tensor& x, const torch::Tensor& encoding) {
  auto value = weights_of(v_);
  value.uses_extra = false;
  auto qkv =
      ops::norm_linear(x, weights_of(norm1_), encoding, {weights_of(q_), weights_of(k_), value});
  auto message = ops::label_attention(qkv[0], qkv[1], qkv[2], heads_);
  qkv.clear();  // memory
  return ops::linear_residual(message, weights_of(proj_), x);
}

PositionTablesImpl::PositionTablesImpl(const NeighbourOptions& options) : options_(options) {
  const int64_t rows = (2 * options.window - 1) * (2 * options.window - 1);
  const int64_t parts = (options.adaptive_bias ? 2 : 0) + (options.position_aggregation ? 1 : 0);
  if (parts > 0)
    encodings_ = register_parameter("relative_position_enc_table",
                                    torch::zeros({rows, parts * options.channels}));
  if (!options.adaptive_bias)
    bias_ = register_parameter("relative_position_bias_table", torch::zeros({rows, options.heads}));
}

ops::RelativePosition PositionTablesImpl::tables() const {
  ops::RelativePosition position;
  position.bias = bias_;
  if (!encodings_.defined()) return position;
  const int64_t depth = options_.channels / options_.heads;
  auto parts = encodings_.view({encodings_.size(0), options_.heads, -1, depth});
  if (options_.adaptive_bias) {
    position.query = parts.select(2, 0);
    position.key = parts.select(2, 1);
  }
  if (options_.position_aggregation) position.value = parts.select(2, parts.size(2) - 1);
  return position;
}

NeighbourEdgesImpl::NeighbourEdgesImpl(const NeighbourOptions& o)
    : options_(o),
      qkv_(register_module("qkv", torch::nn::Linear(o.channels + o.encoding, 3 * o.channels))),
      proj_(register_module("proj", torch::nn::Linear(o.channels, o.channels))),
      norm1_(register_module("norm1", layer_norm(o.channels))),
      norm2_(register_module("norm2", layer_norm(o.channels))),
      attn_(register_module("attn", PositionTables(o))),
      mlp_(register_module("mlp", Mlp(o.channels, o.mlp_ratio * o.channels, o.channels))) {}

torch::Tensor NeighbourEdgesImpl::forward(const torch::Tensor& x, const torch::Tensor& encoding) {
  auto qkv = ops::norm_linear(x, weights_of(norm1_), encoding, {weights_of(qkv_)})[0];
  auto message = ops::window_attention(qkv, options_.heads, options_.window, options_.shift,
                                       attn_->tables(), options_.own_pixel);
  qkv.reset();  // memory: the largest tensor of a layer
  return ops::message_mlp_residual(x, message, weights_of(proj_), weights_of(norm2_), mlp_->fc1(),
                                   mlp_->fc2());
}

}  // namespace nmrf::train
