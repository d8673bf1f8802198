#include "export/message_passing.h"

#include "export/stages.h"
#include "network/extensions/seed_completion.h"

namespace nmrf::graph {
namespace {

PositionTables position_tables(Graph& g, const std::string& name, const StackOptions& s,
                               const ModelOptions& o) {
  Graph::Scope scope(g, "position");
  const std::int64_t side = 2 * s.window - 1, rows = side * side, pixels = s.window * s.window,
                     depth = s.channels / s.heads;
  const std::int64_t parts = (o.adaptive_bias ? 2 : 0) + (o.position_aggregation ? 1 : 0);
  const Value index = relative_index(g, s.window);
  PositionTables tables;
  if (parts > 0) {
    const Value table =
        g.parameter(name + ".relative_position_enc_table", {rows, parts * s.channels});
    const Value by_part =
        g.transpose(g.reshape(table, {rows, s.heads, parts, depth}), {2, 1, 0, 3});
    const Value pairs =
        g.reshape(g.gather(by_part, index, 2), {parts, s.heads, pixels, pixels, depth});
    auto part = [&](std::int64_t i) {
      return g.reshape(g.slice(pairs, 0, i, i + 1), {s.heads, pixels, pixels, depth});
    };
    if (o.adaptive_bias) {
      tables.query = g.transpose(part(0), {0, 2, 3, 1});
      tables.key = g.transpose(part(1), {0, 1, 3, 2});
    }
    if (o.position_aggregation) tables.value = part(parts - 1);
  }
  if (!o.adaptive_bias) tables.bias = position_bias(g, name, s.window, s.heads);
  return tables;
}

// Self edges: the labels of each pixel among themselves.
Value self_edges(Graph& g, const Value& x, const Value& encoding, const WindowGrid& windows,
                 const std::string& name, const StackOptions& s, std::int64_t encoding_channels) {
  Graph::Scope scope(g, "self");
  const std::int64_t depth = s.channels / s.heads;
  const Value normed = layer_norm(g, x, name + ".norm1", s.channels);
  const Value placed = g.concat({normed, encoding}, 1);
  const std::vector<Size> shape{windows.windows(), s.labels, windows.pixels(), s.heads, depth};
  auto split = [&](const Value& tokens, std::vector<std::int64_t> order) {
    return g.transpose(g.reshape(tokens, shape), std::move(order));
  };
  const std::int64_t both = s.channels + encoding_channels;
  const Value q = g.mul(linear(g, placed, name + ".q", both, s.channels), attention_scale(depth));
  const Value k = linear(g, placed, name + ".k", both, s.channels);
  const Value v = linear(g, normed, name + ".v", s.channels, s.channels);
  const Value logits = g.matmul(split(q, {0, 2, 3, 1, 4}), split(k, {0, 2, 3, 4, 1}));
  const Value message = g.matmul(g.softmax(logits, -1), split(v, {0, 2, 3, 1, 4}));
  const Value tokens = g.reshape(g.transpose(message, {0, 3, 1, 2, 4}),
                                 {windows.windows() * s.labels * windows.pixels(), s.channels});
  return g.add(x, linear(g, tokens, name + ".proj", s.channels, s.channels));
}

Value neighbour_edges(Graph& g, const Value& x, const Value& encoding, WindowGrid& windows,
                      const std::string& name, const StackOptions& s, const ModelOptions& o,
                      std::int64_t shift) {
  Graph::Scope scope(g, "neighbours");
  const Value normed = layer_norm(g, x, name + ".norm1", s.channels);
  const Value qkv = linear(g, g.concat({normed, encoding}, 1), name + ".qkv",
                           s.channels + o.encoding_channels(), 3 * s.channels);
  const Value message = window_attention(g, qkv, windows, s.heads, s.channels, shift, s.own_only,
                                         position_tables(g, name + ".attn", s, o));
  return receive(g, x, message, name, s.channels, o.mlp_ratio);
}

}  // namespace

Value relative_index(Graph& g, std::int64_t window) {
  std::vector<std::int64_t> index;
  const std::int64_t pixels = window * window, side = 2 * window - 1;
  for (std::int64_t q = 0; q < pixels; ++q)
    for (std::int64_t k = 0; k < pixels; ++k)
      index.push_back((q / window - k / window + window - 1) * side + q % window - k % window +
                      window - 1);
  return g.ints(index);
}

Value position_bias(Graph& g, const std::string& name, std::int64_t window, std::int64_t heads) {
  const std::int64_t side = 2 * window - 1, pixels = window * window;
  const Value table = g.parameter(name + ".relative_position_bias_table", {side * side, heads});
  return g.reshape(g.transpose(g.gather(table, relative_index(g, window), 0), {1, 0}),
                   {1, heads, 1, pixels, 1, pixels});
}

Value seed_kinds(Graph& g, const Value& kinds, const std::string& name, std::int64_t channels) {
  const Value weight = g.parameter(name + ".weight", {kSeedKinds, channels});
  return g.gather(weight, g.reshape(kinds, {-1}), 0);
}

Value window_attention(Graph& g, const Value& qkv, WindowGrid& windows, std::int64_t heads,
                       std::int64_t channels, std::int64_t shift, bool own_only,
                       const PositionTables& position) {
  Graph::Scope scope(g, "attention");
  const std::int64_t labels = windows.labels(), pixels = windows.pixels(), depth = channels / heads,
                     tokens = labels * pixels;
  const Size n = windows.windows();
  const Value parts =
      g.transpose(g.reshape(qkv, {n, labels, pixels, 3, heads, depth}), {3, 0, 4, 1, 2, 5});
  const auto split = g.split(parts, 0, {1, 1, 1});  // each [1, n, heads, labels, P, D]
  auto flat = [&](const Value& x) { return g.reshape(x, {n, heads, tokens, depth}); };
  const Value q = flat(g.mul(split[0], attention_scale(depth))), k = flat(split[1]),
              v = flat(split[2]);
  // Products with an encoding, the same for all windows and labels: [n, heads, labels, P, c] ->
  // [heads, P, n * labels, c].
  auto by_pixel = [&](const Value& x, std::int64_t c) {
    return g.reshape(g.transpose(g.reshape(x, {n, heads, labels, pixels, c}), {1, 3, 0, 2, 4}),
                     {heads, pixels, n * labels, c});
  };
  auto from_pixel = [&](const Value& x, std::int64_t c, std::vector<std::int64_t> order) {
    return g.transpose(g.reshape(x, {heads, pixels, n, labels, c}), std::move(order));
  };
  const std::vector<Size> wide{n, heads, labels, pixels, labels, pixels};
  Value logits = g.reshape(g.matmul(q, g.transpose(k, {0, 1, 3, 2})), wide);

  // What depends on the pixel of the key alone, [n, heads, labels, P, 1, P]: summed first.
  std::vector<Value> terms;
  if (!position.key.name.empty())
    terms.push_back(g.unsqueeze(
        from_pixel(g.matmul(by_pixel(q, depth), position.key), pixels, {2, 0, 3, 1, 4}), {4}));
  if (!position.bias.name.empty()) terms.push_back(position.bias);
  if (shift > 0) terms.push_back(windows.foreigners(shift));
  if (!position.query.name.empty()) {
    const Value scaled = g.mul(by_pixel(k, depth), attention_scale(depth));
    terms.push_back(
        g.unsqueeze(from_pixel(g.matmul(scaled, position.query), pixels, {2, 0, 4, 3, 1}), {2}));
  }
  if (own_only && labels > 1) terms.push_back(windows.rivals());
  Value term;
  for (const Value& next : terms) term = term.name.empty() ? next : g.add(term, next);
  if (!term.name.empty()) logits = g.add(logits, term);

  const Value weights = g.softmax(g.reshape(logits, {n, heads, tokens, tokens}), -1);
  Value message = g.reshape(g.matmul(weights, v), {n, heads, labels, pixels, depth});
  if (!position.value.name.empty()) {
    Value by_key = weights;
    if (labels > 1)
      by_key = g.reduce("ReduceSum", g.reshape(weights, {n, heads, tokens, labels, pixels}), {3});
    message = g.add(message, from_pixel(g.matmul(by_pixel(by_key, pixels), position.value), depth,
                                        {2, 0, 3, 1, 4}));
  }
  return g.reshape(g.transpose(message, {0, 2, 3, 1, 4}), {n * tokens, channels});
}

Value message_passing(Graph& g, const MatchingMaps& maps, const Value& labels, const Grid& grid,
                      const StackOptions& s, const ModelOptions& o,
                      const std::optional<Value>& more) {
  const Value observed =
      observed_features(g, maps, labels, grid, s.labels, o, o.gamma2_channels, o.gamma2_radius);
  Value x = mlp(g, observed, s.name + ".ffn", o.observed_channels(), s.channels, s.channels);
  if (more) x = g.add(x, *more);
  WindowGrid windows(g, grid, s.window, s.labels);
  const Value encoding = encode_disparity(g, g.reshape(labels, {grid.cells() * s.labels}),
                                          s.encoding_range, o.encoding_frequencies);
  const std::int64_t shifts[2] = {0, s.window / 2};
  Value encodings[2];
  x = windows.enter(x, s.channels, 0);
  std::int64_t now = 0;
  for (std::int64_t i = 0; i < s.layers; ++i) {
    const std::int64_t odd = i % 2, shift = shifts[odd];
    if (encodings[odd].name.empty())
      encodings[odd] = windows.enter(encoding, o.encoding_channels(), shift);
    Graph::Scope scope(g, "layer" + std::to_string(i));
    x = windows.change(x, now, shift);
    now = shift;
    const std::string name = s.name + ".layers." + std::to_string(i);
    if (s.own_self_edges)
      x = self_edges(g, x, encodings[odd], windows, name + ".self_nmp", s, o.encoding_channels());
    x = neighbour_edges(g, x, encodings[odd], windows, name + ".nmp", s, o, shift);
  }
  return layer_norm(g, windows.leave(x, now), s.name + ".norm", s.channels);
}

}  // namespace nmrf::graph
