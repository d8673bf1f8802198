// The extensions sub-pixel seeds, fine search and edge-aware blending (network/extensions).
#include "export/stages.h"
#include "kernels/patches.h"

namespace nmrf::graph {

Value subpixel_starts(Graph& g, const Value& cost, const Value& seeds, std::int64_t planes,
                      std::int64_t labels) {
  Graph::Scope scope(g, "subpixel_seeds");
  const Value plane = g.add(g.unsqueeze(seeds, {2}), g.ints({-1, 0, 1}));  // [cells, k, 3]
  const Value inside = g.clamp(plane, g.integer(planes - 1));
  const Size cells = -1;  // as many as there are
  const Value around = g.reshape(g.gather_elements(cost, g.reshape(inside, {cells, labels * 3}), 1),
                                 {cells, labels, 3});
  const Value logits = g.where(g.equal(plane, inside), around, g.scalar(-1e9f));
  const Value mean = g.mul(g.softmax(logits, -1), g.full(plane));
  return g.reduce("ReduceSum", mean, {2});
}

Value fine_search(Graph& g, const Value& features, const Value& candidates, const Value& log_prior,
                  std::int64_t count, const Grid& grid, const ModelOptions& o, int index) {
  const std::string name = numbered("refine_search", index);
  Graph::Scope scope(g, name);
  const std::int64_t radius = o.refinement_search, places = 2 * radius + 1;
  const auto views = g.split(features, 0, {1, 1});
  MatchingMaps maps;
  maps.left2 = to_tokens(g, views[0], grid, o.feature_channels);
  maps.right2 = to_tokens(g, views[1], grid, o.feature_channels);
  const Value matches =
      observed_features(g, maps, candidates, grid, count, o, o.feature_channels, radius);
  const Value scores = mlp(g, matches, name + ".score", places * o.gamma2_groups,
                           (o.refinement_channels + 1) / 2, places);
  const Value logits = g.reshape(g.full(scores), {grid.cells(), count, places});
  // Of disparity label + r first, label - r last.
  std::vector<float> offsets;
  for (std::int64_t i = 0; i < places; ++i) offsets.push_back(static_cast<float>(radius - i));
  const Value mean =
      g.reduce("ReduceSum", g.mul(g.softmax(logits, -1), g.floats(offsets, {places})), {2});
  const Value trust = g.parameter(name + ".trust", {1}, Type::kFloat);
  const Value mass =
      g.add(g.node("ReduceLogSumExp", {logits}, Type::kFloat,
                   {{"axes", std::vector<std::int64_t>{2}}, {"keepdims", std::int64_t{0}}}),
            g.mul(log_prior, trust));
  const Value best = g.gather_elements(g.add(candidates, mean), g.arg_max(mass, 1, true), 1);
  return g.relu(g.reshape(best, {grid.cells()}));
}

namespace {

// [c, h, w] -> the 3 x 3 cells around each, [9, c, cells].
Value around(Graph& g, const Value& cells, const Grid& grid, std::int64_t channels) {
  const Value padded = g.pad(cells, {0, 1, 1}, {0, 1, 1}, "edge");
  std::vector<Value> shifted;
  for (std::int64_t y = 0; y < 3; ++y)
    for (std::int64_t x = 0; x < 3; ++x) {
      const Value rows = g.slice(padded, 1, y, grid.height + y);
      shifted.push_back(
          g.reshape(g.slice(rows, 2, x, grid.width + x), {1, channels, grid.cells()}));
    }
  return g.concat(shifted, 0);
}

}  // namespace

Value edge_aware_blend(Graph& g, const Value& embedding, const Value& start, const Value& image,
                       const Grid& grid, const ModelOptions& o, int index) {
  const std::string name = numbered("refine_blend", index);
  Graph::Scope scope(g, name);
  const std::int64_t pixels = kernels::kPixels, cells = kernels::kAround;
  // Cells are the last axis: all steps run along it.
  const Value head = g.transpose(g.full(mlp(g, embedding, name + ".weigh", o.refinement_channels,
                                            ModelOptions::blend_hidden, kernels::kHead)),
                                 {1, 0});
  const Value colours =
      g.reshape(g.transpose(g.reshape(image, {3, grid.height, 4, grid.width, 4}), {0, 2, 4, 1, 3}),
                {3, pixels, 1, grid.cells()});
  const Value means = g.reshape(g.reduce("ReduceMean", colours, {1}), {3, grid.height, grid.width});
  const Value beside = g.unsqueeze(g.transpose(around(g, means, grid, 3), {1, 0, 2}), {1});
  const Value distance =
      g.mul(g.reduce("ReduceSum", g.abs(g.sub(colours, beside)), {0}), 1.0f / kernels::kColourUnit);
  const Value own = g.reshape(g.slice(head, 0, 0, pixels * cells), {pixels, cells, grid.cells()});
  const Value factor = g.slice(head, 0, pixels * cells, pixels * cells + 1);
  const Value weights = g.softmax(g.add(own, g.mul(distance, factor)), 1);
  const Value starts = g.reshape(around(g, g.reshape(start, {1, grid.height, grid.width}), grid, 1),
                                 {cells, grid.cells()});
  const Value moved = g.sub(starts, start);  // [9, cells]
  return g.transpose(g.reduce("ReduceSum", g.mul(weights, moved), {1}), {1, 0});
}

}  // namespace nmrf::graph
