#include "export/stages.h"

namespace nmrf::graph {
namespace {

constexpr std::int64_t kPatch = 16;  // pixels of a fine cell

}  // namespace

std::string numbered(const char* name, int index) {
  return index == 0 ? name : name + std::to_string(index + 1);
}

Value median_start(Graph& g, const Value& map, const Grid& grid) {
  Graph::Scope scope(g, "median");
  const Value blocks =
      g.reshape(g.transpose(g.reshape(map, {grid.height, 4, grid.width, 4}), {0, 2, 1, 3}),
                {grid.cells(), kPatch});
  // The lower median: the eighth of sixteen.
  const Value lowest = g.nodes("TopK", {blocks, g.ints({kPatch / 2})}, {Type::kFloat, Type::kInt64},
                               {{"axis", std::int64_t{-1}}, {"largest", std::int64_t{0}}})[0];
  return g.reshape(g.slice(lowest, 1, kPatch / 2 - 1, kPatch / 2), {grid.cells()});
}

Value refinement(Graph& g, const MatchingMaps& maps, const Value& start, const Value& image,
                 const Grid& grid, const ModelOptions& o, int index) {
  Value x;
  {
    Graph::Scope scope(g, numbered("refinement", index));
    const StackOptions stack{numbered("refinement", index),
                             o.refinement_channels,
                             o.refinement_layers,
                             o.refinement_heads,
                             o.refinement_window,
                             1,
                             false,
                             false,
                             128};
    x = message_passing(g, maps, g.reshape(start, {grid.cells(), 1}), grid, stack, o, {});
  }
  Graph::Scope scope(g, "heads");
  Value offsets = g.full(head(g, x, numbered("refine_head", index), o.refinement_channels, kPatch));
  if (o.refinement_blend)
    offsets = g.add(offsets, edge_aware_blend(g, x, start, image, grid, o, index));
  const Value patches = g.mul(g.relu(g.add(offsets, g.unsqueeze(start, {1}))), 4.0f);
  return g.reshape(g.transpose(g.reshape(patches, {grid.height, grid.width, 4, 4}), {0, 2, 1, 3}),
                   {grid.height * 4, grid.width * 4});
}

}  // namespace nmrf::graph
