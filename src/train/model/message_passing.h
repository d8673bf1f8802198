// Message passing steps (paper, Eq. 5 and 6): an embedding a label, x += message, x += MLP(x).
#pragma once

#include <torch/torch.h>

#include "train/model/layers.h"
#include "train/ops/attention.h"

namespace nmrf::train {

// Self edges: the labels of one pixel. No MLP here (the published model has none).
class SelfEdgesStepImpl : public torch::nn::Module {
 public:
  SelfEdgesStepImpl(int64_t channels, int64_t encoding, int64_t heads);
  // x: [B, h, w, k, C], encoding: [B, h, w, k, E] -> [B, h, w, k, C]
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& encoding);

 private:
  int64_t heads_;
  torch::nn::LayerNorm norm1_;
  torch::nn::Linear q_, k_, v_, proj_;
};
TORCH_MODULE(SelfEdgesStep);

// How a neighbour step uses relative positions.
struct NeighbourOptions {
  int64_t channels;
  int64_t encoding;  // channels of the disparity encoding
  int64_t heads;
  int64_t window;
  int64_t shift;
  int64_t mlp_ratio;
  bool adaptive_bias;
  bool position_aggregation;
  ops::OwnPixel own_pixel;
};

// The tables of relative positions; [(2M-1)^2, heads * parts * D], parts = those in use of
// {r^q, r^k} (adaptive bias) and {r^v} (position aggregation).
class PositionTablesImpl : public torch::nn::Module {
 public:
  explicit PositionTablesImpl(const NeighbourOptions& options);
  ops::RelativePosition tables() const;

 private:
  NeighbourOptions options_;
  torch::Tensor encodings_, bias_;
};
TORCH_MODULE(PositionTables);

// Neighbour edges: all labels of the pixels in an M x M window.
class NeighbourEdgesImpl : public torch::nn::Module {
 public:
  explicit NeighbourEdgesImpl(const NeighbourOptions& options);
  // x: [B, H, W, k, C] with H, W multiples of the window, encoding: [B, H, W, k, E]
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& encoding);

 private:
  NeighbourOptions options_;
  torch::nn::Linear qkv_, proj_;
  torch::nn::LayerNorm norm1_, norm2_;
  PositionTables attn_;
  Mlp mlp_;
};
TORCH_MODULE(NeighbourEdges);

}  // namespace nmrf::train
