// Label features, cost volume and map operators, plain form against fast form, at the sizes of the
// network.
//   nmrf_bench_volume [runs=7] [threads=2] [part of a name]
// Runs of the two forms alternate; medians are printed.
#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "ops/cost_volume.h"
#include "ops/dispatch.h"
#include "ops/encoding.h"
#include "ops/kernels/peak.h"
#include "ops/patches.h"
#include "ops/warp.h"

namespace {

namespace ops = nmrf::ops;
using torch::Tensor;

struct Settings {
  int runs = 7, threads = 2;
  std::string filter;
};

double seconds(const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// `call` gives the results of one operator that gradients are taken of, or those without any.
void measure(const Settings& settings, const std::string& name, bool differentiable,
             const std::function<std::vector<Tensor>()>& call) {
  if (name.find(settings.filter) == std::string::npos) return;
  std::vector<Tensor> gradients;
  {
    torch::NoGradGuard no_grad;
    for (const auto& result : call())
      if (differentiable) gradients.push_back(torch::randn(result.sizes()));
  }
  for (const bool training : {false, true}) {
    if (training && !differentiable) continue;
    auto run = [&] {
      torch::AutoGradMode mode(training);
      auto results = call();
      if (training) torch::autograd::backward(results, gradients);
    };
    std::vector<double> plain, fast;
    for (int i = 0; i <= settings.runs; ++i) {
      {
        ops::FastGuard guard(false);
        plain.push_back(seconds(run));
      }
      fast.push_back(seconds(run));
      if (i == 0) plain.clear(), fast.clear();  // warm-up
    }
    std::printf("%-42s %-8s %9.2f %9.2f %7.1f\n", name.c_str(), training ? "fwd+bwd" : "forward",
                median(plain) * 1e3, median(fast) * 1e3, median(plain) / median(fast));
    std::fflush(stdout);
  }
}

struct Size {
  std::string name;
  int64_t batch, h, w;  // of the coarse grid
  int64_t features, planes, c1, c2, groups;
};

void measure_all(const Settings& settings, const Size& s) {
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
    measure(settings, "seed_volume " + s.name, true,
            [&] { return std::vector{ops::seed_volume(left, right, 4, s.planes, score, k).cost}; });
    auto volume = leaf({s.batch, 4, s.planes, s.h, s.w});
    auto seeds = torch::randint(0, s.planes, {s.batch, s.h, s.w, k}, torch::kLong);
    auto lines = volume.detach()
                     .permute({0, 3, 4, 2, 1})
                     .contiguous()
                     .permute({0, 4, 3, 1, 2})
                     .requires_grad_(true);
    measure(settings, "lookup_cost " + s.name, true, [&] {
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
    measure(settings, "label_features" + where, true, [&] {
      return std::vector{ops::label_features(left1, right1, left2, right2, at, s.groups)};
    });
    measure(settings, "encode_disparity" + where, false,
            [&] { return std::vector{ops::encode_disparity(at, fine ? 128 : 64)}; });
  }
  auto score = torch::randn({s.batch, s.h, s.w, k, 64}), disparity = torch::rand(score.sizes());
  measure(settings, "take_winners " + s.name, false,
          [&] { return std::vector{ops::take_winners(score, disparity).index}; });
  auto full = torch::rand({s.batch, 8 * s.h, 8 * s.w});
  measure(settings, "median_reduce " + s.name, false,
          [&] { return std::vector{ops::median_reduce(full)}; });
  auto start = torch::rand({s.batch, 2 * s.h, 2 * s.w});
  auto offsets = leaf({s.batch, 2 * s.h, 2 * s.w, 16});
  measure(settings, "refined_disparity " + s.name, true,
          [&] { return std::vector{ops::refined_disparity(start, offsets)}; });
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  if (argc > 1) settings.runs = std::max(1, std::atoi(argv[1]));
  if (argc > 2) settings.threads = std::max(1, std::atoi(argv[2]));
  if (argc > 3) settings.filter = argv[3];
  at::set_num_threads(settings.threads);
  torch::manual_seed(1);
  std::printf("%d threads, SIMD %s, medians of %d\n", settings.threads,
              ops::kernels::simd_target().c_str(), settings.runs);
  std::printf("%-42s %-8s %9s %9s %7s\n", "", "", "plain ms", "fast ms", "ratio");
  measure_all(settings, {"paper 60x80", 1, 60, 80, 256, 40, 64, 256, 32});
  measure_all(settings, {"fast 60x80", 1, 60, 80, 96, 40, 32, 96, 16});
  measure_all(settings, {"fast 4x24x48", 4, 24, 48, 96, 32, 32, 96, 16});
}
