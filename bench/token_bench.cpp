// Token operators, plain form against fast form, at the sizes of the network.
//   nmrf_bench_token [runs=7] [threads=2] [part of a name]
#include <cmath>
#include <string>
#include <vector>

#include "compare.h"
#include "train/ops/dispatch.h"
#include "train/ops/token_linear.h"
#include "train/ops/token_mlp.h"

namespace {

using nmrf::bench::Table;
using nmrf::ops::LinearWeights;
using nmrf::ops::NormWeights;
using torch::Tensor;

LinearWeights linear(int64_t in, int64_t out) {
  return {(torch::randn({out, in}) / std::sqrt(static_cast<double>(in))).requires_grad_(true),
          torch::zeros({out}, torch::requires_grad())};
}

NormWeights norm(int64_t channels) {
  return {torch::ones({channels}, torch::requires_grad()),
          torch::zeros({channels}, torch::requires_grad())};
}

// All operators on a grid of `pixels` with k labels and C channels.
void measure_all(const Table& table, const std::string& size, int64_t pixels, int64_t k, int64_t c,
                 int64_t ratio, int64_t context) {
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

  table.measure("mlp_residual " + size, 2 * ratio * square,
                [&] { return std::vector{ops::mlp_residual(x, norm1, fc1, fc2)}; });
  table.measure("message_mlp_residual " + size, (2 * ratio + 1) * square, [&] {
    return std::vector{ops::message_mlp_residual(x, message, proj, norm1, fc1, fc2)};
  });
  table.measure("linear_residual " + size, square,
                [&] { return std::vector{ops::linear_residual(message, proj, x)}; });
  auto qkv = linear(c + 31, 3 * c);
  table.measure("norm_linear qkv " + size, 2.0 * tokens * (c + 31) * 3 * c,
                [&] { return ops::norm_linear(x, norm1, encoding, {qkv}); });
  if (k > 1) {
    auto q = linear(c + 31, c), key = linear(c + 31, c);
    table.measure("norm_linear q,k,v " + size, 2.0 * tokens * c * (2 * (c + 31) + c), [&] {
      return ops::norm_linear(x, norm1, encoding, {q, key, value});
    });
    auto qc = linear(c + context, c), kc = linear(c + context, c);
    // The shared part is counted once a pixel.
    table.measure("norm_linear context " + size,
                  3 * square + 2.0 * static_cast<double>(pixels) * context * 2 * c, [&] {
                    return ops::norm_linear(x, norm1, shared, {qc, kc, value});
                  });
  }
  auto h1 = linear(c, c), h2 = linear(c, c), h3 = linear(c, k > 1 ? 64 : 16);
  table.measure("relu_mlp " + size, 2 * square + 2.0 * tokens * c * (k > 1 ? 64 : 16),
                [&] { return std::vector{ops::relu_mlp(x, h1, h2, h3)}; });
}

}  // namespace

int main(int argc, char** argv) {
  const nmrf::bench::Table table(argc, argv);
  measure_all(table, "paper coarse 60x84x4", 60 * 84, 4, 128, 4, 64);
  measure_all(table, "paper fine 120x160", 120 * 160, 1, 128, 4, 64);
  measure_all(table, "fast 4x36x66x4", 4 * 36 * 66, 4, 64, 3, 32);
  measure_all(table, "fast fine 4x64x128", 4 * 64 * 128, 1, 64, 3, 32);
  measure_all(table, "paper 96x160", 12 * 24, 4, 128, 4, 64);
}
