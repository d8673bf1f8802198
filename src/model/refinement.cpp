#include "model/refinement.h"

#include "ops/warp.h"

namespace nmrf {

MessagePassing make_refinement(const ModelOptions& o) {
  NeighbourOptions neighbour{
      .channels = o.refinement_channels,
      .encoding = o.encoding_channels(),
      .heads = o.refinement_heads,
      .window = o.refinement_window,
      .shift = 0,
      .mlp_ratio = o.mlp_ratio,
      .adaptive_bias = o.adaptive_bias,
      .position_aggregation = o.position_aggregation,
      .own_pixel = ops::OwnPixel::kAll,  // there is one label a pixel
  };
  return MessagePassing(o, o.refinement_channels, o.refinement_layers, neighbour,
                        /*own_self_edges=*/false, /*encoding_range=*/128);
}

torch::Tensor Search::found() const {
  const int64_t radius = logits.size(3) / 2;
  auto offsets = radius - torch::arange(2 * radius + 1, logits.options());
  return (start + (logits.softmax(-1) * offsets).sum(-1)).relu();
}

FineSearchImpl::FineSearchImpl(const ModelOptions& o)
    : groups_(o.gamma2_groups),
      radius_(o.refinement_search),
      score_(register_module(
          "score", Mlp((2 * radius_ + 1) * groups_, o.refinement_channels, 2 * radius_ + 1))) {}

Search FineSearchImpl::forward(const torch::Tensor& left, const torch::Tensor& right,
                               const torch::Tensor& start) {
  auto matches = ops::correlate(left, right, start.unsqueeze(-1), groups_, radius_);
  return {start, score_(matches.squeeze(3))};
}

}  // namespace nmrf
