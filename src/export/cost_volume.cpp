// Cost volume and label seeds (paper section 3.3), in 32 bits.
#include "export/stages.h"

namespace nmrf::graph {
namespace {

constexpr std::int64_t kTaps = 5;
constexpr float kFloor = 1e-3f;  // of what is no modal

// Group-wise correlation [groups, cells, planes]. All pairs of a row come from one product; the
// right view is mirrored, so that in the rows of the product, one after another in memory, plane
// z of cell x stands at x * (row - 1) + (w - 1) + z.
Value correlation(Graph& g, const Value& coarse, const Grid& grid, const ModelOptions& o) {
  const std::int64_t groups = o.cost_groups, depth = o.feature_channels / groups,
                     planes = o.planes();
  const Size h = grid.height, w = grid.width, row = w + (planes - 1);
  const auto views = g.split(g.full(coarse), 0, {1, 1});
  const std::vector<Size> shape{groups, depth, h, w};
  const Value left = g.transpose(
      g.reshape(g.mul(views[0], 1.0f / static_cast<float>(depth)), shape), {2, 0, 3, 1});
  const Value right = g.reverse(g.transpose(g.reshape(views[1], shape), {2, 0, 1, 3}), 3);
  Value x = g.pad(g.matmul(left, right), {0, 0, 0, 0}, {0, 0, 0, planes - 1}, "constant");
  x = g.slice(g.reshape(x, {h, groups, w * row}), 2, w - 1, (w - 1) + w * (row - 1));
  x = g.slice(g.reshape(x, {h, groups, w, row - 1}), 3, 0, planes);
  return g.reshape(g.transpose(x, {1, 0, 2, 3}), {groups, grid.cells(), planes});
}

// [1, in, cells, planes] -> [1, out, cells, planes], along the planes.
Value score_convolution(Graph& g, const Value& x, const std::string& name, std::int64_t in,
                        std::int64_t out) {
  const Value weight =
      g.reshape(g.parameter(name + ".weight", {out, in, kTaps}, Type::kFloat), {out, in, 1, kTaps});
  return g.node("Conv", {x, weight, g.parameter(name + ".bias", {out}, Type::kFloat)}, Type::kFloat,
                {{"kernel_shape", std::vector<std::int64_t>{1, kTaps}},
                 {"pads", std::vector<std::int64_t>{0, kTaps / 2, 0, kTaps / 2}}});
}

}  // namespace

LabelSeeds label_seeds(Graph& g, const Value& coarse, const Grid& grid, const ModelOptions& o,
                       const std::optional<Value>& guide) {
  Graph::Scope scope(g, "cost_volume");
  const std::int64_t planes = o.planes(), k = o.labels;
  LabelSeeds seeds;
  seeds.volume = correlation(g, coarse, grid, o);
  Value x = g.reshape(seeds.volume, {1, o.cost_groups, grid.cells(), planes});
  x = g.relu(score_convolution(g, x, "dpn.mlp.0", o.cost_groups, o.cost_hidden1));
  x = g.relu(score_convolution(g, x, "dpn.mlp.2", o.cost_hidden1, o.cost_hidden2));
  const Value cost = score_convolution(g, x, "dpn.mlp.4", o.cost_hidden2, 1);
  const Value probability = g.softmax(cost, -1);
  const Value peak = g.node("MaxPool", {probability}, Type::kFloat,
                            {{"kernel_shape", std::vector<std::int64_t>{1, 3}},
                             {"pads", std::vector<std::int64_t>{0, 1, 0, 1}}});
  const Value low = g.node("Min", {probability, g.scalar(kFloor)}, Type::kFloat);
  const Value modals = g.where(g.equal(probability, peak), probability, low);
  seeds.probability = g.reshape(probability, {grid.cells(), planes});
  // Equal values: the lower plane first.
  seeds.planes = g.nodes("TopK", {g.reshape(modals, {grid.cells(), planes}), g.ints({k})},
                         {Type::kFloat, Type::kInt64}, {{"axis", std::int64_t{-1}}})[1];
  if (o.subpixel_seeds)
    seeds.starts =
        subpixel_starts(g, g.reshape(cost, {grid.cells(), planes}), seeds.planes, planes, k);
  else
    seeds.starts = g.full(seeds.planes);
  if (o.fill_seeds) complete_seeds(g, seeds, grid, o, guide);
  return seeds;
}

}  // namespace nmrf::graph
