#include "export/message_passing.h"
#include "export/stages.h"
#include "export/windows.h"

namespace nmrf::graph {
namespace {

constexpr float kCoarseRange = 64;  // of the disparity encoding

// The cost around each seed: [cells * k, groups * taps].
Value lookup(Graph& g, const LabelSeeds& seeds, const Grid& grid, const ModelOptions& o) {
  const std::int64_t k = o.labels, taps = 2 * o.cost_radius + 1, groups = o.cost_groups;
  std::vector<std::int64_t> offsets;
  for (std::int64_t i = 0; i < taps; ++i) offsets.push_back(i - o.cost_radius);
  const Value plane =
      g.clamp(g.add(g.unsqueeze(seeds.planes, {2}), g.ints(offsets)), g.integer(o.planes() - 1));
  const Value index =
      g.expand(g.reshape(plane, {1, grid.cells(), k * taps}), {groups, grid.cells(), k * taps});
  const Value found =
      g.reshape(g.gather_elements(seeds.volume, index, 2), {groups, grid.cells(), k, taps});
  return g.reshape(g.transpose(found, {1, 2, 0, 3}), {grid.cells() * k, groups * taps});
}

// Half of the heads along the columns, half along the rows. q, k, v: [cells * labels, C].
class CrossAttention {
 public:
  CrossAttention(Graph& graph, const Grid& grid, const ModelOptions& o)
      : g(graph),
        grid_(grid),
        labels_(o.labels),
        heads_(o.propagation_heads / 2),
        depth_(o.propagation_channels / o.propagation_heads) {
    for (int i = 0; i < 2 && labels_ > 1; ++i) {
      const Value token = g.range((i == 0 ? grid.height : grid.width) * labels_);
      const Value pixel = g.node("Div", {token, g.integer(labels_)}, Type::kInt64);
      masks_[i] = rival_mask(g, token, pixel);
    }
  }

  Value forward(const Value& q, const Value& k, const Value& v) const {
    auto halves = [&](const Value& x) {
      return g.split(g.reshape(x, {grid_.height, grid_.width, labels_, 2 * heads_, depth_}), 3,
                     {heads_, heads_});
    };
    const auto qs = halves(g.mul(q, attention_scale(depth_))), ks = halves(k), vs = halves(v);
    const Value column = along(qs[0], ks[0], vs[0], true), row = along(qs[1], ks[1], vs[1], false);
    return g.reshape(g.concat({column, row}, 3), {grid_.cells() * labels_, 2 * heads_ * depth_});
  }

 private:
  // [h, w, labels, heads, depth] of each.
  Value along(const Value& q, const Value& k, const Value& v, bool columns) const {
    Graph::Scope scope(g, columns ? "columns" : "rows");
    const Size stripes = columns ? grid_.width : grid_.height,
               length = columns ? grid_.height : grid_.width;
    // Stripes first: [stripes, heads, length, labels, depth].
    const std::vector<std::int64_t> order = columns ? std::vector<std::int64_t>{1, 3, 0, 2, 4}
                                                    : std::vector<std::int64_t>{0, 3, 1, 2, 4};
    auto stripe = [&](const Value& x) {
      return g.reshape(g.transpose(x, order), {stripes, heads_, length * labels_, depth_});
    };
    const Value key = g.transpose(stripe(k), {0, 1, 3, 2});
    Value logits = g.matmul(stripe(q), key);
    if (labels_ > 1) logits = g.add(logits, masks_[columns ? 0 : 1]);
    const Value message = g.reshape(g.matmul(g.softmax(logits, -1), stripe(v)),
                                    {stripes, heads_, length, labels_, depth_});
    return g.transpose(message, columns ? std::vector<std::int64_t>{2, 0, 3, 1, 4}
                                        : std::vector<std::int64_t>{0, 2, 3, 1, 4});
  }

  Graph& g;
  Grid grid_;
  std::int64_t labels_, heads_, depth_;
  Value masks_[2];  // along columns, along rows
};

// The locally-enhanced term of v [cells * k, C]: of the neighbours the sum over their labels, of
// the cell itself the label. In stripes only the taps along them act.
Value enhancement(Graph& g, const Value& v, const std::string& name, const Grid& grid,
                  const ModelOptions& o) {
  Graph::Scope scope(g, "enhancement");
  const bool cross = o.seed_neighbourhood == SeedNeighbourhood::kCross;
  const std::int64_t channels = o.propagation_channels, parts = cross ? 2 : 1,
                     wide = channels / parts;
  std::vector<float> around, centre;
  for (std::int64_t part = 0; part < parts; ++part) {
    const auto taps = g.parameter_values(name + ".attns." + std::to_string(part) + ".get_v.weight",
                                         {wide, 1, 3, 3});
    for (std::int64_t i = 0; i < wide * 9; ++i) {
      const std::int64_t row = i % 9 / 3, column = i % 3;
      const bool acts = !cross || (part == 0 ? column == 1 : row == 1);
      const float tap = taps.empty() ? 0.0f : taps[static_cast<std::size_t>(i)];
      if (i % 9 == 4) centre.push_back(tap);
      around.push_back(acts && i % 9 != 4 ? tap : 0.0f);
    }
  }
  const Value values = g.reshape(v, {grid.cells(), o.labels, channels});
  const Value sums =
      g.reshape(g.reduce("ReduceSum", values, {1}), {1, grid.height, grid.width, channels});
  const Value filtered = g.node(
      "Conv", {g.transpose(sums, {0, 3, 1, 2}), g.floats(around, {channels, 1, 3, 3}, g.working())},
      g.working(),
      {{"kernel_shape", std::vector<std::int64_t>{3, 3}},
       {"pads", std::vector<std::int64_t>{1, 1, 1, 1}},
       {"group", channels}});
  const Value neighbours =
      g.reshape(to_tokens(g, filtered, grid, channels), {grid.cells(), 1, channels});
  const Value own = g.mul(values, g.floats(centre, {channels}, g.working()));
  return g.reshape(g.add(own, neighbours), {grid.cells() * o.labels, channels});
}

}  // namespace

Value seed_propagation(Graph& g, const LabelSeeds& seeds, const Value& left, const Grid& grid,
                       const ModelOptions& o) {
  const std::string stage = "dpn.propagation";
  const std::int64_t k = o.labels, channels = o.propagation_channels;
  const bool local = o.seed_neighbourhood == SeedNeighbourhood::kLocal;
  Value x;
  {
    Graph::Scope scope(g, "propagation");
    const Value visual = [&] {
      Graph::Scope inner(g, "context");
      return to_tokens(
          g,
          projection(g, left, "dpn.proj", o.feature_channels, o.context_hidden, o.context_channels),
          grid, o.context_channels);
    }();
    {
      Graph::Scope inner(g, "embed");
      const std::int64_t around = o.cost_groups * (2 * o.cost_radius + 1);
      Value cost =
          linear(g, lookup(g, seeds, grid, o), stage + ".cost_encoder.0", around, channels);
      cost = linear(g, gelu(g, cost), stage + ".cost_encoder.2", channels, channels);
      const Value plane = g.reshape(g.full(seeds.planes), {grid.cells() * k});
      const Value encoding = encode_disparity(g, plane, kCoarseRange, o.encoding_frequencies);
      x = linear(g, g.concat({cost, encoding}, 1), stage + ".proj",
                 channels + o.encoding_channels(), channels, false);
      if (seeds.kinds) x = g.add(x, seed_kinds(g, *seeds.kinds, stage + ".kinds", channels));
    }
    Value context = g.expand(g.unsqueeze(visual, {1}), {grid.cells(), k, o.context_channels});
    context = g.reshape(context, {grid.cells() * k, o.context_channels});

    std::optional<WindowGrid> windows;
    std::optional<CrossAttention> cross;
    Grid area = grid;
    if (local) {
      windows.emplace(g, grid, o.propagation_window, k);
      area = windows->padded();
      x = windows->pad(x, channels);
      context = windows->pad(context, o.context_channels);
    } else {
      cross.emplace(g, grid, o);
    }
    for (std::int64_t i = 0; i < o.propagation_layers; ++i) {
      Graph::Scope inner(g, "layer" + std::to_string(i));
      const std::string name = stage + ".layers." + std::to_string(i) + ".nmp";
      const std::int64_t both = channels + o.context_channels;
      const Value normed = layer_norm(g, x, name + ".norm1", channels);
      const Value placed = g.concat({normed, context}, 1);
      const Value q = linear(g, placed, name + ".q", both, channels);
      const Value key = linear(g, placed, name + ".k", both, channels);
      const Value v = linear(g, normed, name + ".v", channels, channels);
      Value message;
      if (local) {
        const std::int64_t shift = i % 2 == 1 ? o.propagation_window / 2 : 0;
        const Value qkv = g.gather(g.concat({q, key, v}, 1), windows->order(shift), 0);
        message = g.gather(window_attention(g, qkv, *windows, o.propagation_heads, channels, shift,
                                            /*own_only=*/true, {}),
                           windows->token_places(shift), 0);
      } else {
        message = cross->forward(q, key, v);
      }
      message = g.add(message, enhancement(g, v, name, area, o));
      x = receive(g, x, message, name, channels, o.mlp_ratio);
    }
    if (local) x = windows->crop(x, channels);
    x = layer_norm(g, x, stage + ".norm", channels);
  }
  Graph::Scope scope(g, "heads");
  const Value residual = g.full(head(g, x, "dpn.prop_head", channels, 1));
  return g.relu(g.add(seeds.starts, g.reshape(residual, {grid.cells(), k})));
}

}  // namespace nmrf::graph
