// Convolutions of the feature network, plain form against fast form, at the sizes of both presets.
//   nmrf_bench_conv [runs=7] [threads=2] [part of a name]
// GFLOP/s count the products of a direct convolution: Winograd can pass the peak.
#include <cmath>
#include <string>
#include <vector>

#include "compare.h"
#include "train/model/backbone.h"
#include "train/ops/convolution.h"
#include "train/ops/dispatch.h"

namespace {

using nmrf::bench::Table;
using torch::Tensor;

Tensor weight(int64_t out, int64_t in, int64_t kernel) {
  return (torch::randn({out, in, kernel, kernel}) /
          std::sqrt(static_cast<double>(in * kernel * kernel)))
      .requires_grad_(true);
}

// The operators of a preset on a batch of images.
void measure_preset(const Table& table, const std::string& preset, int64_t batch, int64_t height,
                    int64_t width) {
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
  table.measure("stem " + size, conv(pixels / 4, 3, stem, 49), [&] {
    return std::vector{ops::conv_norm_relu(images, {stem_weight, {}, 2})};
  });
  auto block = [&](const std::string& name, const Tensor& x, int64_t out, int64_t stride) {
    const int64_t in = x.size(1);
    const bool past = in != out || stride != 1;
    auto w1 = weight(out, in, 3), w2 = weight(out, out, 3),
         w3 = past ? weight(out, in, 1) : Tensor();
    const auto area =
        static_cast<double>(batch * x.size(2) * x.size(3)) / static_cast<double>(stride * stride);
    table.measure(
        name + " " + size,
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
  table.measure("features " + size, conv(pixels / 16, c3, f, 1), [&] {
    return std::vector{ops::convolve(deep, {w1, bias})};
  });
  auto g1 = weight(o.gamma2_hidden, f, 3), g2 = weight(o.gamma2_channels, o.gamma2_hidden, 1);
  table.measure("gamma2 " + size,
                conv(pixels / 16, f, o.gamma2_hidden, 9) +
                    conv(pixels / 16, o.gamma2_hidden, o.gamma2_channels, 1),
                [&] { return std::vector{ops::conv_norm_relu_conv(features, {g1}, {g2})}; });

  nmrf::Backbone backbone(o);
  const double flops = conv(pixels / 4, 3, stem, 49) + conv(pixels / 4, stem, c1, 9) +
                       3 * conv(pixels / 4, c1, c1, 9) + conv(pixels / 16, c1, c2, 10) +
                       3 * conv(pixels / 16, c2, c2, 9) + conv(pixels / 16, c2, c3, 10) +
                       3 * conv(pixels / 16, c3, c3, 9) + conv(pixels / 16, c3, f, 1);
  table.measure("backbone " + size, flops, [&] {
    auto maps = backbone(images);
    return std::vector{maps.fine, maps.coarse};
  });
}

}  // namespace

int main(int argc, char** argv) {
  const nmrf::bench::Table table(argc, argv);
  measure_preset(table, "paper", 2, 480, 640);
  measure_preset(table, "paper", 2, 376, 1248);
  measure_preset(table, "paper", 2, 384, 768);
  measure_preset(table, "fast", 2, 480, 640);
  measure_preset(table, "fast", 8, 256, 512);
  measure_preset(table, "fast", 8, 192, 384);
}
