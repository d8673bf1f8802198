#include "export/stages.h"

namespace nmrf::graph {

NetworkOutput network(Graph& g, const NetworkInput& input, const ModelOptions& o) {
  // Replicated at the right and the bottom.
  const Size bottom = missing_to_multiple(input.height, o.alignment()),
             right = missing_to_multiple(input.width, o.alignment()),
             height = input.height + bottom, width = input.width + right;
  const Grid coarse{height / 8, width / 8}, fine{height / 4, width / 4};
  Value images;
  std::optional<Value> guide;
  {
    Graph::Scope scope(g, "images");
    images = g.pad(g.full(g.concat({input.left, input.right}, 0)), {0, 0, 0, 0},
                   {0, 0, bottom, right}, "edge");
    if (input.guide)
      guide = g.reshape(g.pad(*input.guide, {0, 0, 0, 0}, {0, 0, bottom, right}, "edge"),
                        {height, width});
  }
  const FeatureMaps features = o.backbone == BackboneKind::kSwinT
                                   ? swin_encoder(g, images, {height, width}, o)
                                   : backbone(g, images, o);
  const LabelSeeds seeds = label_seeds(g, features.coarse, coarse, o, guide);
  const Value left = g.split(features.coarse, 0, {1, 1})[0];
  const Value labels = seed_propagation(g, seeds, left, coarse, o);
  auto maps_of = [&](const char* stage, const Value& level, const Grid& grid) {
    Graph::Scope scope(g, stage);
    return matching_maps(g, level, grid, o);
  };
  const Winners winners = inference(g, maps_of("gamma_coarse", features.coarse, coarse), labels,
                                    seeds.kinds, coarse, o);

  Value disparity = g.mul(winners.disparity, 8.0f);
  if (o.refinements > 0) {
    const MatchingMaps maps = maps_of("gamma_fine", features.fine, fine);
    const Value image = o.refinement_blend ? g.split(images, 0, {1, 1})[0] : Value();
    const bool search = o.refinement_search > 0;
    for (int i = 0; i < o.refinements; ++i) {
      // The start is in fine pixels.
      Value start;
      if (!search || i > 0) start = median_start(g, g.mul(disparity, 0.25f), fine);
      if (search && i == 0)
        start = fine_search(g, features.fine, winners.candidates, winners.log_prior, o.labels, fine,
                            o, i);
      if (search && i > 0) {
        const Value only = g.reshape(start, {fine.cells(), 1});
        start = fine_search(g, features.fine, only, g.mul(only, 0.0f), 1, fine, o, i);
      }
      disparity = refinement(g, maps, start, image, fine, o, i);
    }
  }
  Graph::Scope scope(g, "crop");
  auto cropped = [&](Value map) {
    if (!bottom.fixed() || bottom.value > 0) map = g.slice(map, 0, 0, input.height);
    if (!right.fixed() || right.value > 0) map = g.slice(map, 1, 0, input.width);
    return g.reshape(map, {1, 1, input.height, input.width});
  };
  return {cropped(disparity), cropped(winners.confidence)};
}

}  // namespace nmrf::graph
