// Swin-T and its neck (network/swin_backbone.h, swin_encoder.h). Tokens of both views are rows of
// one matrix [2 * cells, C], the left view first.
#include "network/swin_encoder.h"

#include "export/message_passing.h"
#include "export/stages.h"

namespace nmrf::graph {
namespace {

constexpr std::int64_t kViews = 2;
constexpr float kNeckEps = 1e-6f;
constexpr std::int64_t kStemChannels = 64, kHeads = SwinExtractor::kHeads,
                       kPoints = SwinExtractor::kPoints;

Value to_map(Graph& g, const Value& tokens, const Grid& grid, std::int64_t channels) {
  return g.transpose(g.reshape(tokens, {kViews, grid.height, grid.width, channels}), {0, 3, 1, 2});
}

Value block(Graph& g, const Value& x, const std::string& name, std::int64_t channels,
            std::int64_t heads, WindowGrid& windows, std::int64_t shift) {
  // Zeros are put around the normalised grid: their q, k and v are the biases.
  const Value normed = windows.enter(layer_norm(g, x, name + ".norm1", channels), channels, shift);
  const Value qkv = linear(g, normed, name + ".attn.qkv", channels, 3 * channels);
  PositionTables position;
  position.bias = position_bias(g, name + ".attn", SwinSizes::window, heads);
  const Value message = windows.leave(
      window_attention(g, qkv, windows, heads, channels, shift, /*own_only=*/false, position),
      shift);
  return receive(g, x, message, name, channels, SwinSizes::mlp_ratio, ".attn.proj");
}

// Of each 2 x 2 cell the tokens of the left column, then those of the right one.
Value merge(Graph& g, const Value& x, const std::string& name, const Grid& grid,
            std::int64_t channels) {
  Graph::Scope scope(g, "merge");
  const Value cells = g.reshape(x, {kViews, grid.height / 2, 2, grid.width / 2, 2, channels});
  const Value joined =
      g.reshape(g.transpose(cells, {0, 1, 3, 4, 2, 5}), {grid.cells() / 4 * kViews, 4 * channels});
  return linear(g, layer_norm(g, joined, name + ".norm", 4 * channels), name + ".reduction",
                4 * channels, 2 * channels, false);
}

// Places of the queries from 0 to 1, (x, y): [h, w, 1, 2].
Value query_places(Graph& g, const Grid& grid) {
  auto centres = [&](const Size& size) {
    const Value middle = g.add(g.full(g.range(size)), 0.5f);
    return g.node("Div", {middle, g.full(g.sizes({size}))}, Type::kFloat);
  };
  const std::vector<Size> shape{grid.height, grid.width, 1, 1};
  const Value x = g.expand(g.unsqueeze(centres(grid.width), {0, 2, 3}), shape);
  const Value y = g.expand(g.unsqueeze(centres(grid.height), {1, 2, 3}), shape);
  return g.concat({x, y}, 3);
}

// Deformable attention of one level, in 32 bits where positions are concerned. query: normalised
// tokens of the map; value: [2 * cells of the level, C / 2]; -> [2 * cells, C / 2].
Value sample(Graph& g, const Value& query, const Value& value, const std::string& name,
             const Grid& map, const Grid& level, std::int64_t channels) {
  Graph::Scope scope(g, "sample");
  const std::int64_t depth = channels / 2 / kHeads;
  const Size h = map.height, w = map.width;
  Value offsets =
      g.full(linear(g, query, name + ".sampling_offsets", channels, 2 * kHeads * kPoints));
  offsets = g.transpose(g.reshape(offsets, {kViews, h, w, kHeads, kPoints, 2}), {0, 3, 1, 2, 4, 5});
  const Value scale = g.full(g.sizes({level.width, level.height}));
  const Value place = g.add(g.node("Div", {offsets, scale}, Type::kFloat), query_places(g, map));
  const Value grid =
      g.reshape(g.add(g.mul(place, 2.0f), -1.0f), {kViews * kHeads, h, w * kPoints, 2});
  const Value values = g.reshape(
      g.transpose(g.reshape(g.full(value), {kViews, level.height, level.width, kHeads, depth}),
                  {0, 3, 4, 1, 2}),
      {kViews * kHeads, depth, level.height, level.width});
  const Value found = g.reshape(g.node("GridSample", {values, grid}, Type::kFloat,
                                       {{"mode", std::string("bilinear")},
                                        {"padding_mode", std::string("zeros")},
                                        {"align_corners", std::int64_t{0}}}),
                                {kViews, kHeads, depth, h, w, kPoints});
  Value weights = g.full(linear(g, query, name + ".attention_weights", channels, kHeads * kPoints));
  weights = g.softmax(g.reshape(weights, {kViews, h, w, kHeads, kPoints}), -1);
  weights = g.unsqueeze(g.transpose(weights, {0, 3, 1, 2, 4}), {2});
  const Value sum = g.reduce("ReduceSum", g.mul(found, weights), {5});
  return g.reshape(g.transpose(sum, {0, 3, 4, 1, 2}), {map.cells() * kViews, channels / 2});
}

// c: tokens of the map; f: tokens of the stage.
Value extract(Graph& g, const Value& c, const Value& f, std::int64_t stage, const Grid& map,
              const Grid& level, std::int64_t channels) {
  const std::string number = std::to_string(stage);
  Graph::Scope scope(g, "extractor" + number);
  const std::string neck = "image_encoder.neck", name = neck + ".extractors." + number,
                    fcs = neck + ".fcs." + number;
  const std::int64_t from = SwinSizes::channels(stage), hidden = channels / 4;
  const Value features =
      linear(g, layer_norm(g, f, fcs + ".0", from, kNeckEps), fcs + ".1", from, channels);
  const Value value = linear(g, layer_norm(g, features, name + ".feat_norm", channels, kNeckEps),
                             name + ".attn.value_proj", channels, channels / 2);
  const Value query = layer_norm(g, c, name + ".query_norm", channels, kNeckEps);
  const Value sampled = sample(g, query, value, name + ".attn", map, level, channels);
  const Value y = g.add(c, linear(g, sampled, name + ".attn.output_proj", channels / 2, channels));

  const Value narrow = linear(g, layer_norm(g, y, name + ".ffn_norm", channels, kNeckEps),
                              name + ".ffn.fc1", channels, hidden);
  const Value filtered = g.node("Conv",
                                {to_map(g, narrow, map, hidden),
                                 g.parameter(name + ".ffn.dwconv.dwconv.weight", {hidden, 1, 3, 3}),
                                 g.parameter(name + ".ffn.dwconv.dwconv.bias", {hidden})},
                                g.working(),
                                {{"kernel_shape", std::vector<std::int64_t>{3, 3}},
                                 {"pads", std::vector<std::int64_t>{1, 1, 1, 1}},
                                 {"group", hidden}});
  const Value mixed = to_tokens(g, gelu(g, filtered), map, hidden, kViews);
  return g.add(y, linear(g, mixed, name + ".ffn.fc2", hidden, channels));
}

// The map before the first stage: tokens at 1/4.
Value stem(Graph& g, const Value& images, const Grid& map, std::int64_t channels) {
  Graph::Scope scope(g, "stem");
  Value x = images;
  for (int i = 0; i < 3; ++i)
    x = g.relu(instance_norm(
        g,
        convolution(g, x, "image_encoder.neck.stem.stem." + std::to_string(3 * i),
                    i == 0 ? 3 : kStemChannels, kStemChannels, 3, i == 0 ? 2 : 1, false),
        kStemChannels));
  x = g.node("MaxPool", {x}, x.type,
             {{"kernel_shape", std::vector<std::int64_t>{3, 3}},
              {"strides", std::vector<std::int64_t>{2, 2}},
              {"pads", std::vector<std::int64_t>{1, 1, 1, 1}}});
  x = convolution(g, x, "image_encoder.neck.stem.fc", kStemChannels, channels, 1, 1, true);
  return to_tokens(g, x, map, channels, kViews);
}

}  // namespace

FeatureMaps swin_encoder(Graph& g, const Value& images, const Grid& grid, const ModelOptions& o) {
  Graph::Scope scope(g, "swin");
  const std::string name = "image_encoder.backbone";
  const std::int64_t channels = o.feature_channels;
  const Grid map{grid.height / 4, grid.width / 4};
  auto per_channel = [&](const float* values) {
    return g.floats({values, values + 3}, {1, 3, 1, 1});
  };
  const Value scaled = g.node(
      "Div", {g.sub(images, per_channel(SwinEncoder::kMean)), per_channel(SwinEncoder::kDeviation)},
      Type::kFloat);
  Value c = stem(g, scaled, map, channels);
  const Value patches =
      convolution(g, scaled, name + ".patch_embed.proj", 3, SwinSizes::channels(0),
                  SwinSizes::patch, SwinSizes::patch, true);
  Value x = layer_norm(g, to_tokens(g, patches, map, SwinSizes::channels(0), kViews),
                       name + ".patch_embed.norm", SwinSizes::channels(0));
  Grid level = map;
  for (std::int64_t s = 0; s < SwinSizes::stages; ++s) {
    const std::int64_t wide = SwinSizes::channels(s);
    const std::string layer = name + ".layers." + std::to_string(s);
    Graph::Scope inner(g, "stage" + std::to_string(s));
    WindowGrid windows(g, level, SwinSizes::window, 1, kViews, WindowGrid::Border::kBehind);
    for (std::int64_t b = 0; b < SwinSizes::blocks[s]; ++b) {
      Graph::Scope one(g, "block" + std::to_string(b));
      x = block(g, x, layer + ".blocks." + std::to_string(b), wide, SwinSizes::heads(s), windows,
                b % 2 == 0 ? 0 : SwinSizes::window / 2);
    }
    c = extract(g, c, x, s, map, level, channels);
    if (s + 1 == SwinSizes::stages) break;
    x = merge(g, x, layer + ".downsample", level, wide);
    level = {level.height / 2, level.width / 2};
  }
  FeatureMaps maps;
  maps.fine = to_map(g, c, map, channels);
  maps.coarse = half_map(g, maps.fine);
  return maps;
}

}  // namespace nmrf::graph
