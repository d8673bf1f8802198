#include "export/stages.h"

namespace nmrf::graph {

MatchingMaps matching_maps(Graph& g, const Value& features, const Grid& grid,
                           const ModelOptions& o) {
  auto both = [&](const char* name, std::int64_t hidden, std::int64_t channels) {
    Graph::Scope scope(g, name);
    const auto views =
        g.split(projection(g, features, name, o.feature_channels, hidden, channels), 0, {1, 1});
    return std::pair(to_tokens(g, views[0], grid, channels),
                     to_tokens(g, views[1], grid, channels));
  };
  const auto [left1, right1] = both("concatconv", o.gamma1_hidden, o.gamma1_channels);
  const auto [left2, right2] = both("gw", o.gamma2_hidden, o.gamma2_channels);
  return {left1, right1, left2, right2};
}

// A column between two others is their mean, so the correlations are averaged, not the features.
Value observed_features(Graph& g, const MatchingMaps& maps, const Value& labels, const Grid& grid,
                        std::int64_t count, const ModelOptions& o, std::int64_t channels2,
                        std::int64_t radius) {
  Graph::Scope scope(g, "observed");
  const Size h = grid.height, w = grid.width, tokens = grid.cells() * count;
  const std::int64_t groups = o.gamma2_groups;
  const Value column = g.unsqueeze(g.full(g.range(w)), {1});  // [w, 1]
  const Value position = g.sub(column, g.reshape(labels, {h, w, count}));
  const Value lower = g.floor(position);
  const Value later = g.work(g.reshape(g.sub(position, lower), {tokens, 1}));
  const Value sooner = g.add(g.mul(later, -1.0f), 1.0f);
  const Value row = g.unsqueeze(g.mul(g.range(h), g.sizes({w})), {1, 2});  // [h, 1, 1]
  const Value last = g.full(g.sizes({w - 1}));
  const Value own2 = g.unsqueeze(maps.left2, {1});  // [cells, 1, C2]

  std::vector<Value> warped, correlations;
  for (std::int64_t tap = -radius; tap <= radius + 1; ++tap) {
    const Value at = g.add(lower, static_cast<float>(tap));
    const Value inside = g.clamp(at, last);
    const Value seen = g.work(g.reshape(g.full(g.equal(at, inside)), {tokens, 1}));
    const Value index = g.reshape(g.add(g.cast(inside, Type::kInt64), row), {tokens});
    const Value other =
        g.reshape(g.gather(maps.right2, index, 0), {grid.cells(), count, channels2});
    const Value product = g.reshape(g.mul(other, own2), {tokens, groups, channels2 / groups});
    correlations.push_back(g.mul(g.reduce("ReduceMean", product, {2}), seen));
    if (maps.left1.name.empty() || tap < 0 || tap > 1) continue;
    const Value weight = g.mul(tap == 0 ? sooner : later, seen);
    warped.push_back(g.mul(g.gather(maps.right1, index, 0), weight));
  }
  std::vector<Value> parts;
  if (!warped.empty()) {
    const Value own =
        g.expand(g.unsqueeze(maps.left1, {1}), {grid.cells(), count, o.gamma1_channels});
    parts.push_back(g.reshape(own, {tokens, o.gamma1_channels}));
    parts.push_back(g.add(warped[0], warped[1]));
  }
  for (std::size_t i = 0; i + 1 < correlations.size(); ++i)
    parts.push_back(g.add(g.mul(correlations[i], sooner), g.mul(correlations[i + 1], later)));
  return parts.size() == 1 ? parts[0] : g.concat(parts, 1);
}

}  // namespace nmrf::graph
