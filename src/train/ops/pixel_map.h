// How the pixel-wise operators see maps: the channels of a pixel side by side.
#pragma once

#include <torch/torch.h>

#include "kernels/label_feature.h"

namespace nmrf::ops {

// [B, C, h, w] float32 CPU -> [B, h, w, C] whose channels lie side by side: a view of a
// channels-last map, else a copy. Outside the graph.
torch::Tensor channels_last(const torch::Tensor& map);

// maps: [B, h, w, C] with channels side by side.
inline kernels::PixelMap pixel_map(const torch::Tensor& map) {
  return {map.data_ptr<float>(), map.stride(0), map.stride(1), map.stride(2)};
}
inline kernels::MutablePixelMap mutable_pixel_map(const torch::Tensor& map) {
  if (!map.defined()) return {};
  return {map.data_ptr<float>(), map.stride(0), map.stride(1), map.stride(2)};
}

// Autograd wants gradients of the shape of the map: [B, h, w, C] -> [B, C, h, w], a view.
inline torch::Tensor as_map(const torch::Tensor& pixels) {
  return pixels.defined() ? pixels.permute({0, 3, 1, 2}) : pixels;
}

}  // namespace nmrf::ops
