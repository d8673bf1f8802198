#include "model/refinement.h"

namespace nmrf {

torch::Tensor median_reduce(const torch::Tensor& disparity) {
  const int64_t batch = disparity.size(0), h = disparity.size(1) / 4, w = disparity.size(2) / 4;
  auto blocks =
      disparity.view({batch, h, 4, w, 4}).permute({0, 1, 3, 2, 4}).reshape({batch, h, w, 16});
  return std::get<0>(blocks.median(-1));
}

MessagePassing make_refinement(const ModelOptions& o) {
  NeighbourOptions neighbour{
      .channels = o.refinement_channels,
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

torch::Tensor refined_disparity(const torch::Tensor& labels, const torch::Tensor& offsets) {
  return 4 * unfold_patches((labels.unsqueeze(-1) + offsets).relu(), 4);
}

}  // namespace nmrf
