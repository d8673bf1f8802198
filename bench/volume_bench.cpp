// Label features, cost volume and map operators, plain form against fast form, at the sizes of the
// network.
//   nmrf_bench_volume [runs=7] [threads=2] [part of a name]
#include <cmath>
#include <string>
#include <vector>

#include "compare.h"
#include "train/ops/cost_volume.h"
#include "train/ops/dispatch.h"
#include "train/ops/encoding.h"
#include "train/ops/patches.h"
#include "train/ops/warp.h"

namespace {

namespace ops = nmrf::ops;
using nmrf::bench::Table;
using torch::Tensor;

struct Size {
  std::string name;
  int64_t batch, h, w;  // of the coarse grid
  int64_t features, planes, c1, c2, groups;
};

void measure_all(const Table& table, const Size& s) {
  auto leaf = [](at::IntArrayRef sizes) { return torch::randn(sizes).requires_grad_(true); };
  auto map = [&](int64_t channels, int64_t scale) {
    // Channels last, as the fast convolutions hand them on.
    return torch::randn({s.batch, channels, scale * s.h, scale * s.w})
        .contiguous(torch::MemoryFormat::ChannelsLast)
        .requires_grad_(true);
  };
  const int64_t k = 4;
  {
    auto left = map(s.features, 1), right = map(s.features, 1);
    ops::ScoreConvolutions score;
    const int64_t width[] = {4, 8, 16, 1};
    for (int i = 0; i < 3; ++i) {
      score.weight[i] = leaf({width[i + 1], width[i], 5});
      score.bias[i] = leaf({width[i + 1]});
    }
    table.measure("seed_volume " + s.name, 0, [&] {
      return std::vector{ops::seed_volume(left, right, 4, s.planes, score, k).cost};
    });
    auto volume = leaf({s.batch, 4, s.planes, s.h, s.w});
    auto seeds = torch::randint(0, s.planes, {s.batch, s.h, s.w, k}, torch::kLong);
    auto lines = volume.detach()
                     .permute({0, 3, 4, 2, 1})
                     .contiguous()
                     .permute({0, 4, 3, 1, 2})
                     .requires_grad_(true);
    table.measure("lookup_cost " + s.name, 0, [&] {
      return std::vector{ops::lookup_cost(ops::fast_enabled() ? lines : volume, seeds, 4)};
    });
  }
  for (const bool fine : {false, true}) {
    const int64_t scale = fine ? 2 : 1, labels = fine ? 1 : k;
    auto left1 = map(s.c1, scale), right1 = map(s.c1, scale), left2 = map(s.c2, scale),
         right2 = map(s.c2, scale);
    auto at = torch::rand({s.batch, scale * s.h, scale * s.w, labels}) *
              static_cast<double>(scale * s.planes);
    const std::string where = (fine ? " fine " : " coarse ") + s.name;
    table.measure("label_features" + where, 0, [&] {
      return std::vector{ops::label_features(left1, right1, left2, right2, at, s.groups)};
    });
    table.measure("encode_disparity" + where, 0,
                  [&] { return std::vector{ops::encode_disparity(at, fine ? 128 : 64)}; });
  }
  auto score = torch::randn({s.batch, s.h, s.w, k, 64}), disparity = torch::rand(score.sizes());
  table.measure("take_winners " + s.name, 0,
                [&] { return std::vector{ops::take_winners(score, disparity).index}; });
  auto full = torch::rand({s.batch, 8 * s.h, 8 * s.w});
  table.measure("median_reduce " + s.name, 0,
                [&] { return std::vector{ops::median_reduce(full)}; });
  auto start = torch::rand({s.batch, 2 * s.h, 2 * s.w});
  auto offsets = leaf({s.batch, 2 * s.h, 2 * s.w, 16});
  table.measure("refined_disparity " + s.name, 0,
                [&] { return std::vector{ops::refined_disparity(start, offsets)}; });
}

}  // namespace

int main(int argc, char** argv) {
  const nmrf::bench::Table table(argc, argv);
  measure_all(table, {"paper 60x80", 1, 60, 80, 256, 40, 64, 256, 32});
  measure_all(table, {"fast 60x80", 1, 60, 80, 96, 40, 32, 96, 16});
  measure_all(table, {"fast 4x24x48", 4, 24, 48, 96, 32, 32, 96, 16});
}
