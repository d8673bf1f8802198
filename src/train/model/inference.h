// Neural MRF inference on the coarse grid (paper section 3.2): embeddings of candidate labels,
// their message passing, and the disparity hypotheses decoded from them.
#pragma once

#include <torch/torch.h>

#include <vector>

#include "network/options.h"
#include "train/model/layers.h"
#include "train/model/message_passing.h"
#include "train/ops/patches.h"

namespace nmrf::train {

// gamma1 and gamma2 of both views at one level.
struct MatchingMaps {
  torch::Tensor left1, right1;  // [B, C1, h, w]
  torch::Tensor left2, right2;  // [B, C2, h, w]
};

// Self edges (unless switched off) then neighbour edges; published names `self_nmp`, `nmp`.
struct MessageLayerImpl : torch::nn::Module {
  MessageLayerImpl(const NeighbourOptions& options, bool own_self_edges);
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& encoding, Trace* trace,
                        const std::string& name);
  SelfEdgesStep self_nmp{nullptr};
  NeighbourEdges nmp;
};
TORCH_MODULE(MessageLayer);

// The stack that inference and refinement share: observed label feature -> embedding -> layers ->
// norm.
class MessagePassingImpl : public torch::nn::Module {
 public:
  // `encoding_range`: of the disparity encoding, see ops/encoding.h.
  MessagePassingImpl(const ModelOptions& options, int64_t channels, int64_t layers,
                     NeighbourOptions neighbour, bool own_self_edges, int64_t encoding_range);
  // labels: [B, h, w, k] in pixels of the grid. Returns the normalised embedding [B, h, w, k, C]
  // after the last layer or, with `every_layer`, after each one. `name` prefixes trace entries.
  // `more` is added to the first embedding.
  std::vector<torch::Tensor> forward(const MatchingMaps& maps, const torch::Tensor& labels,
                                     bool every_layer, Trace* trace, const std::string& name,
                                     const torch::Tensor& more = {});

 private:
  int64_t groups_, radius_, frequencies_, window_, encoding_range_;
  Mlp ffn_;
  torch::nn::ModuleList layers_;
  torch::nn::LayerNorm norm_;
};
TORCH_MODULE(MessagePassing);

// `inference` with the sizes and switches of the options.
MessagePassing make_inference(const ModelOptions& options);

// Scored disparity hypotheses: each label gives an 8 x 8 patch.
struct Hypotheses {
  torch::Tensor disparity;  // [B, h, w, k, 64] in coarse pixels
  torch::Tensor score;      // [B, h, w, k, 64] logits of the posterior over the k labels
};

using ops::Winners;

}  // namespace nmrf::train
