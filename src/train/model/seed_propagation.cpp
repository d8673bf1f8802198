#include "train/model/seed_propagation.h"

#include "core/stage_clock.h"
#include "train/ops/attention.h"
#include "train/ops/cost_volume.h"
#include "train/ops/encoding.h"

namespace nmrf::train {
namespace {

constexpr int64_t kCoarseRange = 64;  // of the disparity encoding

torch::nn::LayerNorm layer_norm(int64_t channels) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({channels}));
}

// Holds the depthwise filter under the published name `get_v.weight`.
struct ValueFilterImpl : torch::nn::Module {
  explicit ValueFilterImpl(int64_t channels)
      : get_v(register_module("get_v",
                              torch::nn::Conv2d(torch::nn::Conv2dOptions(channels, channels, 3)
                                                    .padding(1)
                                                    .groups(channels)
                                                    .bias(false)))) {}
  torch::nn::Conv2d get_v;
};
TORCH_MODULE(ValueFilter);

}  // namespace

SeedStepImpl::SeedStepImpl(const ModelOptions& o, int64_t layer)
    : heads_(o.propagation_heads),
      window_(o.propagation_window),
      shift_(layer % 2 == 1 ? o.propagation_window / 2 : 0),
      cross_(o.seed_neighbourhood == SeedNeighbourhood::kCross),
      q_(register_module("q", torch::nn::Linear(o.propagation_channels + o.context_channels,
                                                o.propagation_channels))),
      k_(register_module("k", torch::nn::Linear(o.propagation_channels + o.context_channels,
                                                o.propagation_channels))),
      v_(register_module("v", torch::nn::Linear(o.propagation_channels, o.propagation_channels))),
      proj_(register_module("proj",
                            torch::nn::Linear(o.propagation_channels, o.propagation_channels))),
      norm1_(register_module("norm1", layer_norm(o.propagation_channels))),
      norm2_(register_module("norm2", layer_norm(o.propagation_channels))),
      mlp_(register_module("mlp", Mlp(o.propagation_channels, o.mlp_ratio * o.propagation_channels,
                                      o.propagation_channels))) {
  torch::nn::ModuleList attns;
  for (int i = 0; i < (cross_ ? 2 : 1); ++i) {
    ValueFilter filter(cross_ ? o.propagation_channels / 2 : o.propagation_channels);
    attns->push_back(filter);
    filters_.push_back(filter->get_v->weight);
  }
  register_module("attns", attns);
}

torch::Tensor SeedStepImpl::forward(const torch::Tensor& x, const torch::Tensor& context) {
  auto value = weights_of(v_);
  value.uses_extra = false;
  auto qkv =
      ops::norm_linear(x, weights_of(norm1_), context, {weights_of(q_), weights_of(k_), value});
  const auto &q = qkv[0], &k = qkv[1], &v = qkv[2];
  torch::Tensor message;
  if (cross_) {
    // A stripe is one pixel wide: of the 3 x 3 filters only the taps along it act.
    auto column = filters_[0].select(3, 1).squeeze(1), row = filters_[1].select(2, 1).squeeze(1);
    message = ops::stripe_attention(q, k, v, heads_, column, row);
  } else {
    message = ops::window_attention(torch::cat({q, k, v}, -1), heads_, window_, shift_, {},
                                    ops::OwnPixel::kItself) +
              ops::local_enhancement(v, filters_[0]);
  }
  qkv.clear();  // memory
  return ops::message_mlp_residual(x, message, weights_of(proj_), weights_of(norm2_), mlp_->fc1(),
                                   mlp_->fc2());
}

SeedPropagationImpl::SeedPropagationImpl(const ModelOptions& o)
    : options_(o),
      cost_in_(o.cost_groups * (2 * o.cost_radius + 1), o.propagation_channels),
      cost_out_(o.propagation_channels, o.propagation_channels),
      proj_(register_module(
          "proj",
          torch::nn::Linear(torch::nn::LinearOptions(o.propagation_channels + o.encoding_channels(),
                                                     o.propagation_channels)
                                .bias(false)))),
      norm_(register_module("norm", layer_norm(o.propagation_channels))) {
  register_module("cost_encoder", torch::nn::Sequential(cost_in_, torch::nn::GELU(), cost_out_));
  if (o.fill_seeds) kinds_ = register_module("kinds", SeedKinds(o.propagation_channels));
  for (int64_t i = 0; i < o.propagation_layers; ++i) layers_->push_back(SeedLayer(o, i));
  register_module("layers", layers_);
}

torch::Tensor SeedPropagationImpl::forward(const LabelSeeds& seeds, const torch::Tensor& kinds,
                                           const torch::Tensor& context, Trace* trace) {
  auto around = ops::lookup_cost(seeds.volume, seeds.seeds, options_.cost_radius);
  auto feature = ops::mlp(around, weights_of(cost_in_), weights_of(cost_out_));
  record(trace, "prop_cost_feat", feature);
  auto encoding = ops::encode_disparity(seeds.seeds.to(feature.scalar_type()), kCoarseRange,
                                        options_.encoding_frequencies);
  auto x = ops::norm_linear(feature, {}, encoding, {weights_of(proj_)})[0];
  if (kinds_) x = x + kinds_(kinds);
  record(trace, "prop_embed0", x);

  const bool local = options_.seed_neighbourhood == SeedNeighbourhood::kLocal;
  WindowPadding padding(x.size(1), x.size(2), local ? options_.propagation_window : 1);
  x = padding.pad(x);
  auto shared = padding.pad(context.permute({0, 2, 3, 1}).unsqueeze(3)).contiguous();
  for (std::size_t i = 0; i < layers_->size(); ++i) {
    x = layers_->at<SeedLayerImpl>(i).nmp(x, shared);
    record(trace, "prop_layer" + std::to_string(i), x);
  }
  auto memory = norm_(padding.crop(x));
  record(trace, "prop_memory", memory);
  return memory;
}

ProposalNetworkImpl::ProposalNetworkImpl(const ModelOptions& o)
    : options_(o),
      mlp_(register_module("mlp", CostScore(o))),
      proj_(register_module("proj",
                            Projection(o.feature_channels, o.context_hidden, o.context_channels))),
      propagation_(register_module("propagation", SeedPropagation(o))),
      prop_head_(register_module("prop_head", Head(o.propagation_channels, 1))) {}

LabelSeeds ProposalNetworkImpl::seeds(const torch::Tensor& left, const torch::Tensor& right) {
  StageScope stage("cost volume");
  return find_label_seeds(left, right, mlp_, options_);
}

Proposals ProposalNetworkImpl::forward(const torch::Tensor& left, const torch::Tensor& right,
                                       const torch::Tensor& guide, Trace* trace) {
  Proposals result;
  result.seeds = seeds(left, right);
  record(trace, "cost_volume", result.seeds.volume);
  record(trace, "cost", result.seeds.cost);
  record(trace, "prob", result.seeds.prob);
  auto start = in_stage("cost volume", [&] {
    auto labels = options_.subpixel_seeds ? between_planes(result.seeds)
                                          : result.seeds.seeds.to(result.seeds.cost.scalar_type());
    if (options_.fill_seeds) result.kinds = fill_seeds(result.seeds, labels, guide);
    return labels;
  });
  record(trace, "label_seeds", result.seeds.seeds);
  auto memory = in_stage("propagation", [&] {
    auto context = proj_(left);
    record(trace, "prop_context", context);
    return propagation_(result.seeds, result.kinds, context, trace);
  });
  StageScope stage("heads");
  auto residual = prop_head_(memory).squeeze(-1);  // [B, h, w, k]
  record(trace, "prop_head", residual);
  result.labels = (start + residual).relu();
  record(trace, "labels", result.labels);
  return result;
}

}  // namespace nmrf::train
