// Token operators, plain form against fast form, at the sizes of the network.
//   nmrf_bench_token [runs=7] [threads=2] [part of a name]
// Runs of the two forms alternate; medians are printed, with the machine's FMA peak of the same
// minutes.
#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "ops/dispatch.h"
#include "ops/kernels/peak.h"
#include "ops/token_linear.h"
#include "ops/token_mlp.h"

namespace {

using nmrf::ops::LinearWeights;
using nmrf::ops::NormWeights;
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

// GFLOP/s of all threads at once.
double peak(int threads) {
  std::vector<double> each(threads);
  at::parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) each[i] = nmrf::ops::kernels::fma_peak(0.05);
  });
  return std::accumulate(each.begin(), each.end(), 0.0);
}

LinearWeights linear(int64_t in, int64_t out) {
  return {(torch::randn({out, in}) / std::sqrt(static_cast<double>(in))).requires_grad_(true),
          torch::zeros({out}, torch::requires_grad())};
}

NormWeights norm(int64_t channels) {
  return {torch::ones({channels}, torch::requires_grad()),
          torch::zeros({channels}, torch::requires_grad())};
}

// `call` gives the results of one operator; `flops` counts its forward products.
void measure(const Settings& settings, const std::string& name, double flops,
             const std::function<std::vector<Tensor>()>& call) {
  if (name.find(settings.filter) == std::string::npos) return;
  std::vector<Tensor> gradients;
  {
    torch::NoGradGuard no_grad;
    for (const auto& result : call()) gradients.push_back(torch::randn(result.sizes()));
  }
  for (const bool training : {false, true}) {
    auto run = [&] {
      torch::AutoGradMode mode(training);
      auto results = call();
      if (training) torch::autograd::backward(results, gradients);
    };
    std::vector<double> plain, fast, peaks;
    for (int i = 0; i <= settings.runs; ++i) {
      {
        nmrf::ops::FastGuard guard(false);
        plain.push_back(seconds(run));
      }
      fast.push_back(seconds(run));
      peaks.push_back(peak(settings.threads));
      if (i == 0) plain.clear(), fast.clear(), peaks.clear();  // warm-up
    }
    const double done = training ? 3 * flops : flops;  // what is computed again does not count
    const double rate = done / median(fast) * 1e-9, most = median(peaks);
    const double best = done / *std::min_element(fast.begin(), fast.end()) * 1e-9;
    std::printf("%-34s %-8s %8.2f %8.2f %6.2f %8.1f %8.1f %8.1f %5.0f%% %5.0f%%\n", name.c_str(),
                training ? "fwd+bwd" : "forward", median(plain) * 1e3, median(fast) * 1e3,
                median(plain) / median(fast), done / median(plain) * 1e-9, rate, most,
                100 * rate / most, 100 * best / *std::max_element(peaks.begin(), peaks.end()));
    std::fflush(stdout);
  }
}

// All operators on a grid of `pixels` with k labels and C channels.
void measure_all(const Settings& settings, const std::string& size, int64_t pixels, int64_t k,
                 int64_t c, int64_t ratio, int64_t context) {
  namespace ops = nmrf::ops;
  const double tokens = static_cast<double>(pixels * k), square = 2.0 * tokens * c * c;
  auto x = torch::randn({1, pixels, k, c}).requires_grad_(true);
  auto message = torch::randn({1, pixels, k, c}).requires_grad_(true);
  auto encoding = torch::randn({1, pixels, k, 31});
  auto shared = torch::randn({1, pixels, 1, context}).requires_grad_(true);
  auto norm1 = norm(c);
  auto fc1 = linear(c, ratio * c), fc2 = linear(ratio * c, c), proj = linear(c, c);
  auto value = linear(c, c);
  value.uses_extra = false;

  measure(settings, "mlp_residual " + size, 2 * ratio * square,
          [&] { return std::vector{ops::mlp_residual(x, norm1, fc1, fc2)}; });
  measure(settings, "message_mlp_residual " + size, (2 * ratio + 1) * square, [&] {
    return std::vector{ops::message_mlp_residual(x, message, proj, norm1, fc1, fc2)};
  });
  measure(settings, "linear_residual " + size, square,
          [&] { return std::vector{ops::linear_residual(message, proj, x)}; });
  auto qkv = linear(c + 31, 3 * c);
  measure(settings, "norm_linear qkv " + size, 2.0 * tokens * (c + 31) * 3 * c,
          [&] { return ops::norm_linear(x, norm1, encoding, {qkv}); });
  if (k > 1) {
    auto q = linear(c + 31, c), key = linear(c + 31, c);
    measure(settings, "norm_linear q,k,v " + size, 2.0 * tokens * c * (2 * (c + 31) + c), [&] {
      return ops::norm_linear(x, norm1, encoding, {q, key, value});
    });
    auto qc = linear(c + context, c), kc = linear(c + context, c);
    // The shared part is counted once a pixel.
    measure(settings, "norm_linear context " + size,
            3 * square + 2.0 * static_cast<double>(pixels) * context * 2 * c, [&] {
              return ops::norm_linear(x, norm1, shared, {qc, kc, value});
            });
  }
  auto h1 = linear(c, c), h2 = linear(c, c), h3 = linear(c, k > 1 ? 64 : 16);
  measure(settings, "relu_mlp " + size, 2 * square + 2.0 * tokens * c * (k > 1 ? 64 : 16),
          [&] { return std::vector{ops::relu_mlp(x, h1, h2, h3)}; });
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
              nmrf::ops::kernels::simd_target().c_str(), settings.runs);
  std::printf("%-34s %-8s %8s %8s %6s %8s %8s %8s %6s %6s\n", "", "", "plain ms", "fast ms",
              "ratio", "plain GF", "fast GF", "peak GF", "of it", "best");
  measure_all(settings, "paper coarse 60x84x4", 60 * 84, 4, 128, 4, 64);
  measure_all(settings, "paper fine 120x160", 120 * 160, 1, 128, 4, 64);
  measure_all(settings, "fast 4x36x66x4", 4 * 36 * 66, 4, 64, 3, 32);
  measure_all(settings, "fast fine 4x64x128", 4 * 64 * 128, 1, 64, 3, 32);
  measure_all(settings, "paper 96x160", 12 * 24, 4, 128, 4, 64);
}
