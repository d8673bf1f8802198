#include "export/message_passing.h"
#include "export/stages.h"

namespace nmrf::graph {
namespace {

constexpr float kScoreScale = 0.25f;  // of the posterior's logits
constexpr std::int64_t kPatch = 64;   // pixels of a patch

}  // namespace

Winners inference(Graph& g, const MatchingMaps& maps, const Value& labels,
                  const std::optional<Value>& kinds, const Grid& grid, const ModelOptions& o) {
  const std::int64_t k = o.labels;
  Value x;
  {
    Graph::Scope scope(g, "inference");
    std::optional<Value> more;
    if (kinds) more = seed_kinds(g, *kinds, "infer_kinds", o.inference_channels);
    const StackOptions stack{"inference",
                             o.inference_channels,
                             o.inference_layers,
                             o.inference_heads,
                             o.inference_window,
                             k,
                             o.self_edges == SelfEdges::kOwn,
                             o.self_edges != SelfEdges::kShared,
                             64};
    x = message_passing(g, maps, labels, grid, stack, o, more);
  }
  Graph::Scope scope(g, "heads");
  const std::vector<Size> shape{grid.cells(), k, kPatch};
  const Value offsets = g.full(head(g, x, "infer_head", o.inference_channels, kPatch));
  const Value score = g.full(linear(g, x, "infer_score_head", o.inference_channels, kPatch));
  const Value disparity = g.relu(g.add(g.reshape(offsets, shape), g.unsqueeze(labels, {2})));
  const Value logits = g.mul(g.reshape(score, shape), kScoreScale);
  const Value posterior = g.softmax(logits, 1);
  auto to_map = [&](const Value& patches) {
    return g.reshape(g.transpose(g.reshape(patches, {grid.height, grid.width, 8, 8}), {0, 2, 1, 3}),
                     {grid.height * 8, grid.width * 8});
  };
  Winners winners;
  winners.disparity = to_map(g.gather_elements(disparity, g.arg_max(logits, 1, true), 1));
  winners.confidence = to_map(g.reduce("ReduceMax", posterior, {1}));
  if (o.refinements > 0 && o.refinement_search > 0) {
    // Means of 4 x 4 pixels, two blocks by two per cell.
    auto blocks = [&](const Value& patches) {
      const Value means = g.reduce(
          "ReduceMean", g.reshape(patches, {grid.height, grid.width, k, 2, 4, 2, 4}), {4, 6});
      return g.reshape(g.transpose(means, {0, 3, 1, 4, 2}), {grid.cells() * 4, k});
    };
    winners.candidates = g.mul(blocks(disparity), 2.0f);
    winners.log_prior = g.node("Log", {g.at_least(blocks(posterior), 1e-6f)}, Type::kFloat);
  }
  return winners;
}

}  // namespace nmrf::graph
