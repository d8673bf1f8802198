// The three attentions, plain form against fast form, at the sizes of the network.
//   nmrf_bench_attention [runs=7] [threads=2] [part of a name]
// GFLOP/s count the products with keys and values alone, not those with relative positions.
#include <string>
#include <vector>

#include "compare.h"
#include "network/options.h"
#include "train/ops/attention.h"

namespace {

namespace ops = nmrf::ops;
using nmrf::bench::Table;
using torch::Tensor;

Tensor leaf(at::IntArrayRef sizes) { return torch::randn(sizes).requires_grad_(true); }

struct Grid {
  std::string name;
  int64_t batch, h, w, labels, channels, heads;
  double tokens() const { return static_cast<double>(batch * h * w * labels); }
  std::vector<int64_t> sizes(int64_t parts) const {
    return {batch, h, w, labels, parts * channels};
  }
  double flops(double keys) const { return 4 * tokens() * keys * static_cast<double>(channels); }
};

void measure_window(const Table& table, const Grid& grid, int64_t window) {
  const int64_t side = 2 * window - 1, depth = grid.channels / grid.heads;
  auto qkv = leaf(grid.sizes(3));
  auto position = [&] { return leaf({side * side, grid.heads, depth}); };
  const ops::RelativePosition all{position(), position(), position(), {}};
  const double flops = grid.flops(static_cast<double>(window * window * grid.labels));
  for (const int64_t shift : {int64_t{0}, window / 2})
    table.measure("window, shift " + std::to_string(shift) + " " + grid.name, flops, [&] {
      return std::vector{
          ops::window_attention(qkv, grid.heads, window, shift, all, ops::OwnPixel::kItself)};
    });
}

void measure_labels(const Table& table, const Grid& grid) {
  auto q = leaf(grid.sizes(1)), k = leaf(grid.sizes(1)), v = leaf(grid.sizes(1));
  table.measure("self edges " + grid.name, grid.flops(static_cast<double>(grid.labels)),
                [&] { return std::vector{ops::label_attention(q, k, v, grid.heads)}; });
}

void measure_stripes(const Table& table, const Grid& grid) {
  auto q = leaf(grid.sizes(1)), k = leaf(grid.sizes(1)), v = leaf(grid.sizes(1));
  auto column = leaf({grid.channels / 2, 3}), row = leaf({grid.channels / 2, 3});
  const double keys = static_cast<double>(grid.labels * (grid.h + grid.w)) / 2;
  table.measure("stripes " + grid.name, grid.flops(keys), [&] {
    return std::vector{ops::stripe_attention(q, k, v, grid.heads, column, row)};
  });
}

// `batch` images whose coarse grid is h x w.
void measure_preset(const Table& table, const std::string& preset, int64_t batch, int64_t h,
                    int64_t w) {
  const auto o = nmrf::preset_options(preset);
  const auto name = [&](int64_t rows, int64_t columns) {
    return preset + " " + std::to_string(batch) + "x" + std::to_string(columns) + "x" +
           std::to_string(rows);
  };
  const auto padded = [](int64_t n, int64_t window) { return (n + window - 1) / window * window; };
  const int64_t m = o.inference_window, hm = padded(h, m), wm = padded(w, m);
  const Grid coarse{name(hm, wm), batch, hm, wm, o.labels, o.inference_channels, o.inference_heads};
  measure_stripes(table,
                  {name(h, w), batch, h, w, o.labels, o.propagation_channels, o.propagation_heads});
  measure_labels(table, coarse);
  measure_window(table, coarse, m);
  const int64_t f = o.refinement_window, hf = padded(2 * h, f), wf = padded(2 * w, f);
  measure_window(
      table, {"fine " + name(hf, wf), batch, hf, wf, 1, o.refinement_channels, o.refinement_heads},
      f);
}

}  // namespace

int main(int argc, char** argv) {
  const Table table(argc, argv);
  measure_preset(table, "paper", 1, 60, 80);
  measure_preset(table, "paper", 1, 47, 156);
  measure_preset(table, "fast", 1, 60, 80);
  measure_preset(table, "fast", 4, 32, 64);
}
