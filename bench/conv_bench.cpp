// Convolutions of the feature network, plain form against fast form, at the sizes of both presets.
//   nmrf_bench_conv [runs=5] [threads=2] [part of a name]
// Runs of the two forms alternate; medians are printed, with the machine's FMA peak of the same
// minutes. GFLOP/s count the products of a direct convolution: Winograd can pass the peak.
#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "model/backbone.h"
#include "ops/convolution.h"
#include "ops/dispatch.h"
#include "ops/kernels/peak.h"

namespace {

using torch::Tensor;

struct Settings {
  int runs = 5, threads = 2;
  std::string filter;
};

// With one thread the processor time, which the load of others disturbs less.
double now(int threads) {
  if (threads == 1) return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double seconds(int threads, const std::function<void()>& run) {
  const double start = now(threads);
  run();
  return now(threads) - start;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

double least(const std::vector<double>& values) {
  return *std::min_element(values.begin(), values.end());
}

double peak(int threads) {
  std::vector<double> each(threads);
  at::parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) each[i] = nmrf::ops::kernels::fma_peak(0.02);
  });
  return std::accumulate(each.begin(), each.end(), 0.0);
}

// `call` gives the results of one operator; `flops` counts its forward products.
void measure(const Settings& settings, const std::string& name, double flops,
             const std::function<std::vector<Tensor>()>& call) {
  if (name.find(settings.filter) == std::string::npos) return;
  std::vector<Tensor> gradients;
  {
    torch::NoGradGuard no_grad;
    for (const auto& result : call()) gradients.push_back(torch::randn_like(result));
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
        plain.push_back(seconds(settings.threads, run));
      }
      fast.push_back(seconds(settings.threads, run));
      peaks.push_back(peak(settings.threads));
      if (i == 0) plain.clear(), fast.clear(), peaks.clear();  // warm-up
    }
    const double done = training ? 3 * flops : flops;  // what is computed again does not count
    std::printf("%-36s %-8s %8.2f %8.2f %6.2f %6.2f %8.1f %8.1f %8.1f\n", name.c_str(),
                training ? "fwd+bwd" : "forward", median(plain) * 1e3, median(fast) * 1e3,
                median(plain) / median(fast), least(plain) / least(fast),
                done / median(plain) * 1e-9, done / median(fast) * 1e-9, median(peaks));
    std::fflush(stdout);
  }
}

Tensor weight(int64_t out, int64_t in, int64_t kernel) {
  return (torch::randn({out, in, kernel, kernel}) /
          std::sqrt(static_cast<double>(in * kernel * kernel)))
      .requires_grad_(true);
}

// The operators of a preset on a batch of images.
void measure_preset(const Settings& settings, const std::string& preset, int64_t batch,
                    int64_t height, int64_t width) {
  namespace ops = nmrf::ops;
  const auto o = nmrf::preset_options(preset);
  const std::string size = preset + " " + std::to_string(batch) + "x" + std::to_string(width) +
                           "x" + std::to_string(height);
  const auto pixels = static_cast<double>(batch * height * width);
  auto last = [](Tensor x) {
    return x.contiguous(torch::MemoryFormat::ChannelsLast).requires_grad_(true);
  };
  auto conv = [](double pixels, int64_t in, int64_t out, int64_t taps) {
    return 2 * pixels * static_cast<double>(in * out * taps);
  };
  const int64_t stem = o.backbone_stem, c1 = o.backbone_stage1, c2 = o.backbone_stage2,
                c3 = o.backbone_stage3, f = o.feature_channels;
  auto images = torch::randn({batch, 3, height, width});
  auto half = last(torch::randn({batch, c1, height / 2, width / 2}));
  auto quarter = last(torch::randn({batch, c2, height / 4, width / 4}));
  auto deep = last(torch::randn({batch, c3, height / 4, width / 4}));
  auto features = last(torch::randn({batch, f, height / 4, width / 4}));
  auto stem_weight = weight(stem, 3, 7);
  measure(settings, "stem " + size, conv(pixels / 4, 3, stem, 49), [&] {
    return std::vector{ops::conv_norm_relu(images, {stem_weight, {}, 2})};
  });
  auto block = [&](const std::string& name, const Tensor& x, int64_t out, int64_t stride) {
    const int64_t in = x.size(1);
    const bool past = in != out || stride != 1;
    auto w1 = weight(out, in, 3), w2 = weight(out, out, 3),
         w3 = past ? weight(out, in, 1) : Tensor();
    const auto area =
        static_cast<double>(batch * x.size(2) * x.size(3)) / static_cast<double>(stride * stride);
    measure(settings, name + " " + size,
            conv(area, in, out, 9) + conv(area, out, out, 9) + (past ? conv(area, in, out, 1) : 0),
            [&] {
              return std::vector{ops::residual_block(x, {w1, {}, stride}, {w2}, {w3, {}, stride})};
            });
  };
  block("stage 1", half, c1, 1);
  block("stage 2, stride 2", half, c2, 2);
  block("stage 2", quarter, c2, 1);
  block("stage 3, wider", quarter, c3, 1);
  block("stage 3", deep, c3, 1);
  auto w1 = weight(f, c3, 1), bias = torch::zeros({f}, torch::requires_grad());
  measure(settings, "features " + size, conv(pixels / 16, c3, f, 1), [&] {
    return std::vector{ops::convolve(deep, {w1, bias})};
  });
  auto g1 = weight(o.gamma2_hidden, f, 3), g2 = weight(o.gamma2_channels, o.gamma2_hidden, 1);
  measure(settings, "gamma2 " + size,
          conv(pixels / 16, f, o.gamma2_hidden, 9) +
              conv(pixels / 16, o.gamma2_hidden, o.gamma2_channels, 1),
          [&] { return std::vector{ops::conv_norm_relu_conv(features, {g1}, {g2})}; });

  nmrf::Backbone backbone(o);
  const double flops = conv(pixels / 4, 3, stem, 49) + conv(pixels / 4, stem, c1, 9) +
                       3 * conv(pixels / 4, c1, c1, 9) + conv(pixels / 16, c1, c2, 10) +
                       3 * conv(pixels / 16, c2, c2, 9) + conv(pixels / 16, c2, c3, 10) +
                       3 * conv(pixels / 16, c3, c3, 9) + conv(pixels / 16, c3, f, 1);
  measure(settings, "backbone " + size, flops, [&] {
    auto maps = backbone(images);
    return std::vector{maps.fine, maps.coarse};
  });
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
  std::printf("%-36s %-8s %8s %8s %6s %6s %8s %8s %8s\n", "", "", "plain ms", "fast ms", "ratio",
              "best", "plain GF", "fast GF", "peak GF");
  measure_preset(settings, "paper", 2, 480, 640);
  measure_preset(settings, "paper", 2, 376, 1248);
  measure_preset(settings, "paper", 2, 384, 768);
  measure_preset(settings, "fast", 2, 480, 640);
  measure_preset(settings, "fast", 8, 256, 512);
  measure_preset(settings, "fast", 8, 192, 384);
}
