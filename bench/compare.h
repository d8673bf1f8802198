// What the programs here share: one table, an operator a line (forward, then forward and backward).
// Runs of the plain and the fast form alternate; medians are printed, with the machine's FMA peak
// of the same minutes.
#pragma once

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "kernels/peak.h"
#include "train/ops/dispatch.h"

namespace nmrf::bench {

class Table {
 public:
  // Arguments of the program: [runs=7] [threads=2] [part of a name].
  Table(int argc, char** argv) {
    if (argc > 1) runs_ = std::max(1, std::atoi(argv[1]));
    if (argc > 2) threads_ = std::max(1, std::atoi(argv[2]));
    if (argc > 3) filter_ = argv[3];
    at::set_num_threads(threads_);
    torch::manual_seed(1);
    std::printf("%d threads, SIMD %s, medians of %d\n", threads_,
                ops::kernels::simd_target().c_str(), runs_);
    std::printf("%-42s %-8s %9s %9s %7s %7s %9s %9s %9s\n", "", "", "plain ms", "fast ms", "ratio",
                "best", "plain GF", "fast GF", "peak GF");
  }

  // `call` gives the results of one operator; `flops` counts its forward products (0: none to
  // speak of). GFLOP/s of backward count twice that; what is computed again does not count.
  void measure(const std::string& name, double flops,
               const std::function<std::vector<torch::Tensor>()>& call) const {
    if (name.find(filter_) == std::string::npos) return;
    std::vector<torch::Tensor> gradients;
    for (const auto& result : call())
      if (result.requires_grad()) gradients.push_back(torch::randn_like(result));
    row(name, "forward", flops, [&] {
      torch::NoGradGuard no_grad;
      call();
    });
    if (gradients.empty()) return;
    row(name, "fwd+bwd", 3 * flops, [&] { torch::autograd::backward(call(), gradients); });
  }

 private:
  void row(const std::string& name, const char* pass, double flops,
           const std::function<void()>& run) const {
    std::vector<double> plain, fast, peaks;
    for (int i = 0; i <= runs_; ++i) {
      {
        ops::FastGuard guard(false);
        plain.push_back(seconds(run));
      }
      fast.push_back(seconds(run));
      if (flops > 0) peaks.push_back(peak());
      if (i == 0) plain.clear(), fast.clear(), peaks.clear();  // warm-up
    }
    const auto [plain_best, plain_median] = best_and_median(plain);
    const auto [fast_best, fast_median] = best_and_median(fast);
    std::printf("%-42s %-8s %9.2f %9.2f %7.2f %7.2f", name.c_str(), pass, plain_median * 1e3,
                fast_median * 1e3, plain_median / fast_median, plain_best / fast_best);
    if (flops > 0)
      std::printf(" %9.1f %9.1f %9.1f", flops / plain_median * 1e-9, flops / fast_median * 1e-9,
                  best_and_median(peaks).second);
    std::printf("\n");
    std::fflush(stdout);
  }

  static double seconds(const std::function<void()>& run) {
    const auto start = std::chrono::steady_clock::now();
    run();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  static std::pair<double, double> best_and_median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return {values.front(), values[values.size() / 2]};
  }

  // GFLOP/s of all threads at once.
  double peak() const {
    std::vector<double> each(threads_);
    at::parallel_for(0, threads_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) each[i] = ops::kernels::fma_peak(0.02);
    });
    return std::accumulate(each.begin(), each.end(), 0.0);
  }

  int runs_ = 7, threads_ = 2;
  std::string filter_;
};

}  // namespace nmrf::bench
