// Token layers on 8-bit integers: fast against plain, and the network against its float form.
#include "kernels/bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <vector>

#include "core/rng.h"
#include "kernels/byte_conv.h"
#include "kernels/pack.h"
#include "network/formula.h"
#include "network/formula_images.h"
#include "network/layers.h"
#include "network/network_run.h"

namespace nmrf {
namespace {

std::vector<float> random_values(std::size_t count, std::uint64_t seed, double most = 2) {
  Rng rng(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(rng.uniform(-most, most));
  return values;
}

struct Product {
  std::vector<float> fast, plain;
};
Product multiply(const std::vector<float>& x, const std::vector<float>& w, std::size_t rows,
                 std::size_t k, std::size_t n) {
  std::vector<float> bias = random_values(n, 3), padded(tokens::padded(n));
  tokens::pack_bias(bias.data(), n, padded.data());
  std::vector<float> packed(tokens::packed_bytes_size(k, n));
  tokens::pack_bytes(w.data(), k, k, n, packed.data());
  Product result{std::vector<float>(rows * n), std::vector<float>(rows * n)};
  tokens::multiply_bytes(x.data(), rows, k, packed.data(), n, padded.data(), result.fast.data());
  tokens::multiply_bytes_plain(x.data(), rows, k, w.data(), n, bias.data(),
                               tokens::byte_arithmetic().weight_levels, result.plain.data());
  return result;
}

double largest_gap(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
  return largest;
}

TEST(Bytes, FastProductIsThePlainOne) {
  for (const std::size_t rows : {1, 3, 12, 47, 49})
    for (const std::size_t k : {1, 3, 4, 19, 36, 64, 83, 193})
      for (const std::size_t n : {1, 5, 16, 17, 33, 64, 100}) {
        const auto result = multiply(random_values(rows * k, 10 * k + n),
                                     random_values(n * k, 10 * n + k), rows, k, n);
        // Sums of k products of up to 4, in float.
        ASSERT_LE(largest_gap(result.fast, result.plain), 2e-6 * static_cast<double>(k + 4))
            << rows << " x " << k << " x " << n;
      }
}

// Products of two bytes meet in 16 bits on some CPUs: the largest ones must not saturate.
TEST(Bytes, LargestValuesDoNotSaturate) {
  constexpr std::size_t kDepth = 64, kColumns = 40, kRows = 13;
  std::vector<float> x(kRows * kDepth, 1.0f), w(kColumns * kDepth);
  for (std::size_t r = 0; r < kRows; ++r) x[r * kDepth] = -1.0f;  // all others are at the top
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = i / kDepth % 2 == 0 ? 1.0f : -1.0f;
  const auto result = multiply(x, w, kRows, kDepth, kColumns);
  EXPECT_LE(largest_gap(result.fast, result.plain), 1e-4);
  EXPECT_NEAR(result.fast[0] - result.fast[1], 2 * 62.0, 10);
}

TEST(Bytes, RowsAndColumnsWithoutRange) {
  const std::vector<float> x(2 * 8, 0.75f), zeros(2 * 8, 0.0f);
  auto w = random_values(3 * 8, 5);
  std::fill(w.begin() + 8, w.begin() + 16, 0.0f);
  for (const auto& rows : {x, zeros}) {
    const auto result = multiply(rows, w, 2, 8, 3);
    EXPECT_LE(largest_gap(result.fast, result.plain), 1e-5);
    for (float value : result.fast) EXPECT_TRUE(std::isfinite(value));
  }
}

// Odd sizes, all kinds of kernels, signed and normalised inputs.
TEST(Bytes, FastConvolutionIsThePlainOne) {
  struct Case {
    std::size_t height, width, in, kernel, stride, out;
  };
  for (const Case& c :
       {Case{7, 13, 5, 3, 1, 9}, Case{6, 31, 24, 3, 2, 48}, Case{9, 10, 64, 1, 1, 96},
        Case{5, 12, 24, 1, 2, 17}, Case{11, 17, 3, 7, 2, 24}, Case{4, 1, 8, 3, 1, 40}})
    for (const bool normalised : {false, true}) {
      const conv::Direct op{1,
                            c.height,
                            c.width,
                            c.in,
                            c.kernel,
                            c.stride,
                            c.kernel / 2,
                            (c.height + 2 * (c.kernel / 2) - c.kernel) / c.stride + 1,
                            (c.width + 2 * (c.kernel / 2) - c.kernel) / c.stride + 1,
                            c.out};
      const auto map = random_values(c.height * c.width * c.in, 7);
      const auto w = random_values(c.out * c.in * c.kernel * c.kernel, 8);
      const auto mean = random_values(c.in, 9, 0.5),
                 bias = random_values(tokens::padded(c.out), 10);
      std::vector<float> scale(c.in, 1.25f);
      conv::Source x{map.data()};
      if (normalised) x.norm = {mean.data(), scale.data()};
      std::vector<float> packed(conv::byte_weights_size(op));
      conv::byte_weights(op, w.data(), packed.data());
      std::vector<float> plain(op.out_height * op.out_width * op.out), fast(plain.size());
      std::vector<float> moments(op.units() * conv::moments_size(op.out));
      // In two parts, as threads would.
      conv::byte_forward(op, x, packed.data(), bias.data(), fast.data(), moments.data(), 0, 2);
      conv::byte_forward(op, x, packed.data(), bias.data(), fast.data(), moments.data(), 2,
                         op.units());
      conv::byte_forward_plain(op, x, w.data(), bias.data(),
                               tokens::byte_arithmetic().weight_levels, plain.data());
      EXPECT_LE(largest_gap(fast, plain), 2e-6 * static_cast<double>(op.depth() + 8))
          << c.kernel << " x " << c.kernel << ", " << c.in << " to " << c.out << " channels";
      double mean_of_row = 0;
      for (std::size_t i = 0; i < op.out_width; ++i) mean_of_row += plain[i * op.out];
      EXPECT_NEAR(moments[0], mean_of_row / static_cast<double>(op.out_width), 1e-4);
    }
}

// An MLP and a projection of both kinds, on rows that end inside vectors.
class ByteLayers : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(ByteLayers, AreNearTheFloatOnes) {
  const std::int64_t channels = GetParam(), rows = 61 * 2, extra = 19;
  FormulaParameters exact, bytes;
  bytes.use_bytes(true);
  const auto x = random_values(static_cast<std::size_t>(rows * channels), 1),
             message = random_values(static_cast<std::size_t>(rows * channels), 2),
             further = random_values(static_cast<std::size_t>(rows * extra), 3);
  auto rows_of = [](const std::vector<float>& values, std::int64_t wide) {
    return tokens::InputRows{values.data(), static_cast<std::size_t>(wide)};
  };
  const auto wide = static_cast<std::size_t>(channels);
  auto mlp = [&](Parameters& parameters) {
    const TokenMlp layer(
        parameters, channels, {{"a.fc1", 3 * channels}, {"a.fc2", channels}},
        {.entry = "a.proj", .message = channels, .norm = "a.norm", .residual = true});
    std::vector<float> y(x.size());
    layer.run(rows_of(x, channels), rows_of(message, channels), {y.data(), wide}, 0, rows);
    return y;
  };
  auto projection = [&](Parameters& parameters, std::int64_t labels) {
    const TokenProjection layer(parameters, "b.norm", channels, extra, labels,
                                {{"b.q", channels}, {"b.v", channels, true, false}});
    std::vector<float> q(x.size()), v(x.size());
    const tokens::OutputRows out[2] = {{q.data(), wide}, {v.data(), wide}};
    MemoryBlock block;
    Arena arena(block);
    const ArenaPlan plan;  // a projection takes no buffers
    arena.begin(plan);
    ThreadPool pool(2);
    Context context(arena, pool);
    layer.forward(context, rows, rows_of(x, channels), rows_of(further, extra), out);
    q.insert(q.end(), v.begin(), v.end());
    return q;
  };
  auto compare = [](const std::vector<float>& a, const std::vector<float>& b, const char* what) {
    double gap = 0, size = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      gap += std::pow(static_cast<double>(a[i]) - b[i], 2);
      size += std::pow(static_cast<double>(b[i]), 2);
    }
    std::cout << "  " << what << ": relative difference " << std::sqrt(gap / size) << "\n";
    EXPECT_LT(std::sqrt(gap / size), 0.02) << what;
    EXPECT_GT(gap, 0) << what << " did not round anything";
  };
  compare(mlp(bytes), mlp(exact), "MLP");
  compare(projection(bytes, 1), projection(exact, 1), "projection");
  compare(projection(bytes, 2), projection(exact, 2), "projection, shared");
}

INSTANTIATE_TEST_SUITE_P(Channels, ByteLayers, ::testing::Values(16, 36, 64, 100));

TEST(Bytes, ThreadsDoNotChangeTheMap) {
  FormulaParameters bytes;
  bytes.use_bytes(true);
  const Network network(bytes, preset_options("fast"));
  const auto [left, right] = test::formula_images(100, 76);
  const FloatMap one = test::run_network(network, left, right, 1).disparity;
  for (const int threads : {2, 3, 5}) {
    const FloatMap map = test::run_network(network, left, right, threads).disparity;
    EXPECT_TRUE(std::equal(one.begin(), one.end(), map.begin())) << threads << " threads";
  }
}

}  // namespace
}  // namespace nmrf
