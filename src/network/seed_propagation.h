// Disparity proposals (paper section 3.3): label seeds exchange messages and become the candidate
// labels of inference.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "network/extensions/seed_completion.h"
#include "network/label_seeds.h"
#include "network/layers.h"
#include "network/message_passing.h"
#include "network/options.h"

namespace nmrf {

// One message passing step among label seeds: cross-shaped stripes (the pixel's column and row,
// half of the heads each) or local windows, with a locally-enhanced term.
class SeedStep {
 public:
  SeedStep(Parameters& parameters, const std::string& name, const ModelOptions& options,
           std::int64_t layer);
  // x changes in place; context_map: [grid, Cc], shared by the labels of a pixel.
  void forward(Context& context, TokenGrid& x, const float* context_map) const;

 private:
  void cross(Context& context, const TokenGrid& x, float* qkv) const;
  void local(Context& context, const TokenGrid& x, float* qkv) const;

  std::int64_t heads_, window_, shift_, context_channels_;
  bool cross_;
  TokenProjection qkv_;
  TokenMlp mlp_;
  std::vector<float> filters_[2];  // cross: [3, C/2] along the column, the row; local: [3, 3, C]
};

class SeedPropagation {
 public:
  SeedPropagation(Parameters& parameters, const ModelOptions& options);
  // Candidate labels [h, w, k] in coarse pixels, at least 0. left: coarse features. Gives the
  // values of the cost volume back, which nothing needs afterwards.
  Buffer<float> forward(Context& context, LabelSeeds& seeds, const FeatureMap& left) const;

 private:
  TokenGrid embed(Context& context, const LabelSeeds& seeds) const;

  ModelOptions options_;
  Projection visual_context_;
  TokenMlp cost_encoder_;
  TokenProjection proj_;
  std::optional<SeedKindEmbedding> kinds_;
  std::vector<SeedStep> steps_;
  TokenMlp head_;
  std::vector<float> norm_weight_, norm_bias_;
};

}  // namespace nmrf
