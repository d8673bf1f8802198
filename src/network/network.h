// The whole network: two images to a disparity map.
#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "network/backbone.h"
#include "network/cost_volume.h"
#include "network/extensions/fine_search.h"
#include "network/inference.h"
#include "network/observed_features.h"
#include "network/options.h"
#include "network/refinement.h"
#include "network/seed_propagation.h"
#include "network/swin_encoder.h"

namespace nmrf {

// H, W: the padded size (multiples of ModelOptions::alignment).
struct NetworkOutput {
  Buffer<float> disparity;   // [H, W] px
  Buffer<float> confidence;  // [H, W]: posterior probability of the winning label
  Buffer<float> spread;      // [H, W]: mean distance of the hypotheses from its own, coarse pixels
  Buffer<float> winner;      // [H, W]: its hypothesis, before refinement, coarse pixels
  Buffer<float> labels;      // [H/8, W/8, k] candidate labels, coarse pixels
  Buffer<std::int64_t> seeds;  // [H/8, W/8, k] the planes they started from
};

class Network {
 public:
  Network(Parameters& parameters, const ModelOptions& options);

  // left, right: [H, W, 3] RGB 0 to 255, H and W multiples of the alignment and at least 32. guide:
  // a map [H, W] in px found before at another size (extension seed completion); unused unless
  // `guided`. labels: k of this pass, at least 2; 0: the model's.
  NetworkOutput forward(Context& context, FeatureMap left, FeatureMap right,
                        const float* guide = nullptr, bool guided = false, int labels = 0) const;

  const ModelOptions& options() const { return options_; }
  // max_disp is a run-time choice: no weight depends on it.
  void set_max_disp(int max_disp);

 private:
  // `view` ends the names of traces.
  FeatureMaps features(Context& context, const FeatureMap& image, const char* view) const;

  ModelOptions options_;
  std::variant<Backbone, SwinEncoder> backbone_;
  CostScore cost_score_;
  SeedPropagation propagation_;
  MatchingProjections projections_;
  Inference inference_;
  std::vector<FineSearch> searches_;
  std::vector<Refinement> refinements_;
};

// Every parameter of a network of these options.
std::vector<ParameterSpec> parameters_of(const ModelOptions& options);

}  // namespace nmrf
