#include "export/layers.h"

#include <cmath>
#include <vector>

namespace nmrf::graph {
namespace {

Value normalised(Graph& g, const Value& x, const Value& weight, const Value& bias, float eps) {
  if (g.opset() >= 17)
    return g.node("LayerNormalization", {x, weight, bias}, x.type,
                  {{"axis", std::int64_t{-1}}, {"epsilon", eps}});
  // Before opset 17 it is no operator; in 32 bits, as the sum of squares may be large.
  const Value wide = g.full(x);
  const Value centred = g.sub(wide, g.reduce("ReduceMean", wide, {-1}, true));
  const Value variance = g.reduce("ReduceMean", g.mul(centred, centred), {-1}, true);
  const Value deviation = g.node("Sqrt", {g.add(variance, eps)}, Type::kFloat);
  const Value unit = g.node("Div", {centred, deviation}, Type::kFloat);
  return g.add(g.mul(g.cast(unit, x.type), weight), bias);
}

}  // namespace

Value linear(Graph& g, const Value& x, const std::string& name, std::int64_t in, std::int64_t out,
             bool bias) {
  std::vector<Value> inputs{g.work(x), g.parameter(name + ".weight", {out, in})};
  if (bias) inputs.push_back(g.parameter(name + ".bias", {out}));
  return g.node("Gemm", inputs, g.working(), {{"transB", std::int64_t{1}}});
}

Value layer_norm(Graph& g, const Value& x, const std::string& name, std::int64_t channels,
                 float eps) {
  const Value weight = g.parameter(name + ".weight", {channels});
  const Value bias = g.parameter(name + ".bias", {channels});
  return normalised(g, g.work(x), weight, bias, eps);
}

Value gelu(Graph& g, const Value& x) {
  const Value normal = g.node("Erf", {g.div(x, std::sqrt(2.0f))}, x.type);
  return g.mul(g.mul(x, g.add(normal, 1.0f)), 0.5f);
}

Value mlp(Graph& g, const Value& x, const std::string& name, std::int64_t in, std::int64_t hidden,
          std::int64_t out) {
  return linear(g, gelu(g, linear(g, x, name + ".fc1", in, hidden)), name + ".fc2", hidden, out);
}

Value head(Graph& g, const Value& x, const std::string& name, std::int64_t channels,
           std::int64_t out) {
  const Value first = g.relu(linear(g, x, name + ".layers.0", channels, channels));
  const Value second = g.relu(linear(g, first, name + ".layers.1", channels, channels));
  return linear(g, second, name + ".layers.2", channels, out);
}

Value receive(Graph& g, const Value& x, const Value& message, const std::string& name,
              std::int64_t channels, std::int64_t mlp_ratio, const char* proj) {
  const Value y = g.add(x, linear(g, message, name + proj, channels, channels));
  const Value normed = layer_norm(g, y, name + ".norm2", channels);
  Graph::Scope scope(g, "mlp");
  return g.add(y, mlp(g, normed, name + ".mlp", channels, mlp_ratio * channels, channels));
}

Value convolution(Graph& g, const Value& x, const std::string& name, std::int64_t in,
                  std::int64_t out, std::int64_t kernel, std::int64_t stride, bool bias) {
  std::vector<Value> inputs{g.work(x), g.parameter(name + ".weight", {out, in, kernel, kernel})};
  if (bias) inputs.push_back(g.parameter(name + ".bias", {out}));
  return g.node("Conv", inputs, g.working(),
                {{"kernel_shape", std::vector<std::int64_t>(2, kernel)},
                 {"strides", std::vector<std::int64_t>(2, stride)},
                 {"pads", std::vector<std::int64_t>(4, kernel % 2 * (kernel / 2))}});
}

Value instance_norm(Graph& g, const Value& x, std::int64_t channels) {
  const std::vector<float> ones(static_cast<std::size_t>(channels), 1.0f), zeros(ones.size(), 0.0f);
  return g.node("InstanceNormalization",
                {x, g.floats(ones, {channels}, x.type), g.floats(zeros, {channels}, x.type)},
                x.type, {{"epsilon", kNormEps}});
}

Value projection(Graph& g, const Value& x, const std::string& name, std::int64_t in,
                 std::int64_t hidden, std::int64_t out) {
  const Value wide = convolution(g, x, name + ".0", in, hidden, 3, 1, false);
  return convolution(g, g.relu(instance_norm(g, wide, hidden)), name + ".3", hidden, out, 1, 1,
                     false);
}

Value to_tokens(Graph& g, const Value& map, const Grid& grid, std::int64_t channels,
                std::int64_t views) {
  return g.reshape(g.transpose(map, {0, 2, 3, 1}), {grid.cells() * views, channels});
}

Value half_map(Graph& g, const Value& map) {
  return g.node("AveragePool", {map}, map.type,
                {{"kernel_shape", std::vector<std::int64_t>{2, 2}},
                 {"strides", std::vector<std::int64_t>{2, 2}}});
}

Value encode_disparity(Graph& g, const Value& labels, float range, std::int64_t frequencies) {
  const Value t = g.unsqueeze(g.div(g.mul(labels, 3.14f), range), {-1});
  std::vector<float> powers;
  for (std::int64_t i = 0; i < frequencies; ++i) powers.push_back(std::ldexp(1.0f, int(i)));
  const Value scaled = g.mul(t, g.floats(powers, {frequencies}));
  const Value encoding = g.concat(
      {g.node("Sin", {scaled}, Type::kFloat), g.node("Cos", {scaled}, Type::kFloat), t}, -1);
  return g.work(encoding);
}

float attention_scale(std::int64_t depth) { return 1.0f / std::sqrt(static_cast<float>(depth)); }

Value rival_mask(Graph& g, const Value& token, const Value& pixel) {
  auto same = [&](const Value& x) { return g.equal(g.unsqueeze(x, {1}), g.unsqueeze(x, {0})); };
  const Value rivals = g.both(same(pixel), g.negate(same(token)));
  return g.where(rivals, g.scalar(kUnseen, g.working()), g.scalar(0, g.working()));
}

}  // namespace nmrf::graph
