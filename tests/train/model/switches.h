// A small network and one for every switch of it.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "network/options.h"

namespace nmrf::train {

// A small network for tests: all parts, few channels.
inline ModelOptions tiny_options() {
  ModelOptions o;
  o.backbone_stem = o.backbone_stage1 = 8;
  o.backbone_stage2 = o.backbone_stage3 = 12;
  o.feature_channels = 16;
  o.max_disp = 64;
  o.propagation_layers = 2;
  o.propagation_channels = 16;
  o.context_hidden = o.context_channels = 8;
  o.gamma1_hidden = o.gamma2_hidden = 8;
  o.gamma1_channels = 8;
  o.gamma2_channels = 16;
  o.gamma2_groups = 4;
  o.inference_layers = 2;
  o.inference_channels = 16;
  o.refinement_layers = 2;
  o.refinement_channels = 16;
  return o;
}

// The switches of the ablations.
inline std::vector<std::pair<std::string, ModelOptions>> every_switch() {
  using Change = std::function<void(ModelOptions&)>;
  const std::vector<std::pair<std::string, Change>> changes = {
      {"adaptive bias off", [](auto& o) { o.adaptive_bias = false; }},
      {"position aggregation off", [](auto& o) { o.position_aggregation = false; }},
      {"both off", [](auto& o) { o.adaptive_bias = o.position_aggregation = false; }},
      {"no self edges", [](auto& o) { o.self_edges = SelfEdges::kNone; }},
      {"shared self edges", [](auto& o) { o.self_edges = SelfEdges::kShared; }},
      {"no refinement", [](auto& o) { o.refinements = 0; }},
      {"two refinements", [](auto& o) { o.refinements = 2; }},
      {"local seed windows", [](auto& o) { o.seed_neighbourhood = SeedNeighbourhood::kLocal; }},
      {"k = 1", [](auto& o) { o.labels = 1; }},
      {"k = 2", [](auto& o) { o.labels = 2; }},
      {"k = 3", [](auto& o) { o.labels = 3; }},
      {"k = 5", [](auto& o) { o.labels = 5; }},
      {"k = 6", [](auto& o) { o.labels = 6; }},
      {"correlation around the labels", [](auto& o) { o.gamma2_radius = 2; }},
      {"seeds between planes", [](auto& o) { o.subpixel_seeds = true; }},
      {"search before refinement", [](auto& o) { o.refinement_search = 2; }},
      {"pixels take starts of cells beside theirs", [](auto& o) { o.refinement_blend = true; }},
      {"four frequencies", [](auto& o) { o.encoding_frequencies = 4; }},
      {"two refinements, searches and blends, seeds between planes and of neighbours, four "
       "frequencies",
       [](auto& o) {
         o.refinement_blend = true;
         o.refinement_search = 2;
         o.subpixel_seeds = o.fill_seeds = true;
         o.refinements = 2;
         o.encoding_frequencies = 4;
       }},
      {"max_disp beyond the width", [](auto& o) { o.max_disp = 160; }},
  };
  std::vector<std::pair<std::string, ModelOptions>> all;
  for (const auto& [name, change] : changes) {
    all.emplace_back(name, tiny_options());
    change(all.back().second);
  }
  return all;
}

}  // namespace nmrf::train
