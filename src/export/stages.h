// The stages of the network as parts of a graph: the same files and names as in src/network.
// Parameters are asked for by their published names and shapes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "export/graph.h"
#include "export/layers.h"
#include "network/options.h"

namespace nmrf::graph {

// ---- backbone.cpp
// Features of both views, [2, C, h, w]: left, then right.
struct FeatureMaps {
  Value fine, coarse;  // at 1/4 and 1/8
};
// images: [2, 3, H, W], RGB 0 to 255, H and W multiples of 8.
FeatureMaps backbone(Graph& graph, const Value& images, const ModelOptions& options);

// ---- swin_encoder.cpp
// The same by Swin-T and its neck; H and W multiples of 32. grid: of the images.
FeatureMaps swin_encoder(Graph& graph, const Value& images, const Grid& grid,
                         const ModelOptions& options);

// ---- cost_volume.cpp
struct LabelSeeds {
  Value volume;                // [groups, cells, planes]
  Value probability;           // [cells, planes]
  Value planes;                // int64 [cells, k]: seeds, best first
  Value starts;                // float [cells, k], coarse pixels
  std::optional<Value> kinds;  // int64 [cells, k], with seed completion
};
// guide: float [H, W] px where the graph takes one.
LabelSeeds label_seeds(Graph& graph, const Value& coarse, const Grid& grid,
                       const ModelOptions& options, const std::optional<Value>& guide);

// ---- extensions.cpp and seed_completion.cpp
// cost: [cells, planes]
Value subpixel_starts(Graph& graph, const Value& cost, const Value& seeds, std::int64_t planes,
                      std::int64_t labels);
void complete_seeds(Graph& graph, LabelSeeds& seeds, const Grid& grid, const ModelOptions& options,
                    const std::optional<Value>& guide);

// ---- seed_propagation.cpp
// Candidate labels, float [cells, k] in coarse pixels. left: [1, C, h, w].
Value seed_propagation(Graph& graph, const LabelSeeds& seeds, const Value& left, const Grid& grid,
                       const ModelOptions& options);

// ---- observed_features.cpp
// gamma1 and gamma2 of both views, each [cells, C].
struct MatchingMaps {
  Value left1, right1, left2, right2;
};
// features: [2, C, h, w] of either level; both share the parameters.
MatchingMaps matching_maps(Graph& graph, const Value& features, const Grid& grid,
                           const ModelOptions& options);
// maps.left1 without a name: only correlations. labels: float [cells, k] -> [cells * k, channels].
Value observed_features(Graph& graph, const MatchingMaps& maps, const Value& labels,
                        const Grid& grid, std::int64_t count, const ModelOptions& options,
                        std::int64_t channels2, std::int64_t radius);

// ---- message_passing.cpp
struct StackOptions {
  std::string name;  // of the parameters
  std::int64_t channels, layers, heads, window, labels;
  bool own_self_edges, own_only;
  float encoding_range;
};
// labels: float [cells, k] in pixels of the grid -> normalised embedding [cells * k, C]. more:
// added to the first embedding.
Value message_passing(Graph& graph, const MatchingMaps& maps, const Value& labels, const Grid& grid,
                      const StackOptions& stack, const ModelOptions& options,
                      const std::optional<Value>& more);

// ---- inference.cpp
struct Winners {
  Value disparity;   // [H, W] coarse pixels
  Value confidence;  // [H, W]
  // Of the extension fine search, on the grid at 1/4: float [cells, k].
  Value candidates, log_prior;
};
Winners inference(Graph& graph, const MatchingMaps& maps, const Value& labels,
                  const std::optional<Value>& kinds, const Grid& grid, const ModelOptions& options);

// ---- refinement.cpp
// Medians of 4 x 4 pixels of [4 h, 4 w] -> [cells].
Value median_start(Graph& graph, const Value& map, const Grid& grid);
// start: [cells] fine pixels -> disparity [4 h, 4 w] px. image: [1, 3, 4 h, 4 w].
Value refinement(Graph& graph, const MatchingMaps& maps, const Value& start, const Value& image,
                 const Grid& grid, const ModelOptions& options, int index);
// `name`, or with a 2 behind it for the second module.
std::string numbered(const char* name, int index);

// ---- extensions.cpp
// Of the best candidate, where it matches best: [cells]. features: [2, C, h, w] at 1/4.
Value fine_search(Graph& graph, const Value& features, const Value& candidates,
                  const Value& log_prior, std::int64_t count, const Grid& grid,
                  const ModelOptions& options, int index);
// What blending adds to the offsets [cells, 16]. embedding: [cells, C].
Value edge_aware_blend(Graph& graph, const Value& embedding, const Value& start, const Value& image,
                       const Grid& grid, const ModelOptions& options, int index);

// ---- network.cpp
struct NetworkInput {
  Value left, right;           // [1, 3, H, W], 0 to 255, any type
  std::optional<Value> guide;  // float [1, 1, H, W] px
  Size height, width;
};
struct NetworkOutput {
  Value disparity, confidence;  // float [1, 1, H, W]
};
NetworkOutput network(Graph& graph, const NetworkInput& input, const ModelOptions& options);

}  // namespace nmrf::graph
