// Disparity Proposal Network: label seeds and their propagation to candidate labels.
#pragma once

#include <torch/torch.h>

#include "network/options.h"
#include "train/model/label_seeds.h"
#include "train/model/layers.h"

namespace nmrf::train {

// One message passing step among label seeds: cross-shaped stripes or local windows.
class SeedStepImpl : public torch::nn::Module {
 public:
  SeedStepImpl(const ModelOptions& options, int64_t layer);
  // x: [B, h, w, k, C]; context: [B, h, w, 1, Cc], shared by the labels of a pixel.
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& context);

 private:
  int64_t heads_, window_, shift_;
  bool cross_;
  torch::nn::Linear q_, k_, v_, proj_;
  torch::nn::LayerNorm norm1_, norm2_;
  Mlp mlp_;
  std::vector<torch::Tensor> filters_;  // [C/2, 1, 3, 3] twice, or [C, 1, 3, 3] once for windows
};
TORCH_MODULE(SeedStep);

// Gives a step the published name `layers.N.nmp`.
struct SeedLayerImpl : torch::nn::Module {
  SeedLayerImpl(const ModelOptions& options, int64_t layer)
      : nmp(register_module("nmp", SeedStep(options, layer))) {}
  SeedStep nmp;
};
TORCH_MODULE(SeedLayer);

class SeedPropagationImpl : public torch::nn::Module {
 public:
  explicit SeedPropagationImpl(const ModelOptions& options);
  // -> [B, h, w, k, C] after the final norm. context: [B, Cc, h, w].
  // kinds: of the seeds where options.fill_seeds.
  torch::Tensor forward(const LabelSeeds& seeds, const torch::Tensor& kinds,
                        const torch::Tensor& context, Trace* trace);

 private:
  ModelOptions options_;
  torch::nn::Linear cost_in_, cost_out_, proj_;
  SeedKinds kinds_{nullptr};
  torch::nn::ModuleList layers_;
  torch::nn::LayerNorm norm_;
};
TORCH_MODULE(SeedPropagation);

struct Proposals {
  LabelSeeds seeds;
  torch::Tensor kinds;   // [B, h, w, k] SeedKind, undefined unless options.fill_seeds
  torch::Tensor labels;  // [B, h, w, k] candidate labels in coarse pixels, differentiable
};

class ProposalNetworkImpl : public torch::nn::Module {
 public:
  explicit ProposalNetworkImpl(const ModelOptions& options);
  // left, right: coarse features [B, C, h, w]; guide: see fill_seeds(), may be undefined.
  Proposals forward(const torch::Tensor& left, const torch::Tensor& right,
                    const torch::Tensor& guide, Trace* trace);
  // The cost volume alone, for the training stage of the initialisation loss.
  LabelSeeds seeds(const torch::Tensor& left, const torch::Tensor& right);
  Head prop_head() const { return prop_head_; }
  void set_max_disp(int max_disp) { options_.max_disp = max_disp; }

 private:
  ModelOptions options_;
  CostScore mlp_;
  Projection proj_;
  SeedPropagation propagation_;
  Head prop_head_;
};
TORCH_MODULE(ProposalNetwork);

}  // namespace nmrf::train
