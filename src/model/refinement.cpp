#include "model/refinement.h"

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

}  // namespace nmrf
