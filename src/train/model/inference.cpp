#include "train/model/inference.h"

#include "train/ops/encoding.h"
#include "train/ops/warp.h"

namespace nmrf::train {

MessageLayerImpl::MessageLayerImpl(const NeighbourOptions& options, bool own_self_edges)
    : nmp(register_module("nmp", NeighbourEdges(options))) {
  if (own_self_edges)
    self_nmp = register_module("self_nmp",
                               SelfEdgesStep(options.channels, options.encoding, options.heads));
}

torch::Tensor MessageLayerImpl::forward(const torch::Tensor& x, const torch::Tensor& encoding,
                                        Trace* trace, const std::string& name) {
  auto y = x;
  if (self_nmp) {
    y = self_nmp(y, encoding);
    record(trace, name + "_self", y);
  }
  y = nmp(y, encoding);
  record(trace, name, y);
  return y;
}

MessagePassingImpl::MessagePassingImpl(const ModelOptions& options, int64_t channels,
                                       int64_t layers, NeighbourOptions neighbour,
                                       bool own_self_edges, int64_t encoding_range)
    : groups_(options.gamma2_groups),
      radius_(options.gamma2_radius),
      frequencies_(options.encoding_frequencies),
      window_(neighbour.window),
      encoding_range_(encoding_range),
      ffn_(register_module("ffn", Mlp(options.observed_channels(), channels, channels))),
      norm_(
          register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({channels})))) {
  for (int64_t i = 0; i < layers; ++i) {
    neighbour.shift = i % 2 == 1 ? window_ / 2 : 0;
    layers_->push_back(MessageLayer(neighbour, own_self_edges));
  }
  register_module("layers", layers_);
}

std::vector<torch::Tensor> MessagePassingImpl::forward(const MatchingMaps& maps,
                                                       const torch::Tensor& labels,
                                                       bool every_layer, Trace* trace,
                                                       const std::string& name,
                                                       const torch::Tensor& more) {
  auto x = ffn_(ops::label_features(maps.left1, maps.right1, maps.left2, maps.right2, labels,
                                    groups_, radius_));
  if (more.defined()) x = x + more;
  record(trace, name + "_embed0", x);
  WindowPadding padding(x.size(1), x.size(2), window_);
  x = padding.pad(x);
  auto encoding = padding.pad(ops::encode_disparity(labels, encoding_range_, frequencies_));
  std::vector<torch::Tensor> decoded;
  for (std::size_t i = 0; i < layers_->size(); ++i) {
    x = layers_->at<MessageLayerImpl>(i).forward(x, encoding, trace,
                                                 name + "_layer" + std::to_string(i));
    if (every_layer || i + 1 == layers_->size()) decoded.push_back(norm_(padding.crop(x)));
  }
  record(trace, name + "_tgt", decoded.back());
  return decoded;
}

MessagePassing make_inference(const ModelOptions& o) {
  NeighbourOptions neighbour{
      .channels = o.inference_channels,
      .encoding = o.encoding_channels(),
      .heads = o.inference_heads,
      .window = o.inference_window,
      .shift = 0,
      .mlp_ratio = o.mlp_ratio,
      .adaptive_bias = o.adaptive_bias,
      .position_aggregation = o.position_aggregation,
      .own_pixel =
          o.self_edges == SelfEdges::kShared ? ops::OwnPixel::kAll : ops::OwnPixel::kItself,
  };
  return MessagePassing(o, o.inference_channels, o.inference_layers, neighbour,
                        o.self_edges == SelfEdges::kOwn, /*encoding_range=*/64);
}

}  // namespace nmrf::train
