// The kernels of the Swin-T backbone against slow computations, on sizes that end inside vectors
// and windows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "core/rng.h"
#include "kernels/attention.h"
#include "kernels/deformable.h"
#include "kernels/map_steps.h"

namespace nmrf {
namespace {

std::vector<float> random_values(std::size_t count, std::uint64_t seed, float scale = 1) {
  Rng rng(seed);
  std::vector<float> values(count);
  for (float& value : values) value = scale * static_cast<float>(2 * rng.uniform() - 1);
  return values;
}

void expect_near(const std::vector<float>& ours, const std::vector<double>& slow, double most) {
  ASSERT_EQ(ours.size(), slow.size());
  for (std::size_t i = 0; i < ours.size(); ++i) ASSERT_NEAR(ours[i], slow[i], most) << "at " << i;
}

double gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }

TEST(MapSteps, LayerNorm) {
  for (std::size_t channels : {1u, 7u, 96u, 100u}) {
    const std::size_t rows = 5;
    const auto x = random_values(rows * channels, channels, 3), weight = random_values(channels, 2),
               bias = random_values(channels, 3);
    std::vector<double> slow;
    for (std::size_t r = 0; r < rows; ++r) {
      double mean = 0, spread = 0;
      for (std::size_t c = 0; c < channels; ++c) mean += x[r * channels + c];
      mean /= static_cast<double>(channels);
      for (std::size_t c = 0; c < channels; ++c) spread += std::pow(x[r * channels + c] - mean, 2);
      const double scale = 1 / std::sqrt(spread / static_cast<double>(channels) + 1e-5);
      for (std::size_t c = 0; c < channels; ++c)
        slow.push_back((x[r * channels + c] - mean) * scale * weight[c] + bias[c]);
    }
    std::vector<float> y = x;
    conv::layer_norm(y.data(), channels, weight.data(), bias.data(), 1e-5f, y.data(), 0, 2);
    conv::layer_norm(y.data(), channels, weight.data(), bias.data(), 1e-5f, y.data(), 2, rows);
    expect_near(y, slow, 2e-5);
  }
}

TEST(MapSteps, MaxPool) {
  for (const auto& [height, width, channels] :
       {std::tuple{1, 1, 3}, {2, 5, 16}, {7, 6, 19}, {8, 9, 64}}) {
    const std::size_t h = (height + 1) / 2, w = (width + 1) / 2;
    const auto x = random_values(static_cast<std::size_t>(height * width * channels), 4);
    std::vector<double> slow;
    for (int r = 0; r < height; r += 2)
      for (int c = 0; c < width; c += 2)
        for (int channel = 0; channel < channels; ++channel) {
          double most = -1e9;
          for (int i = std::max(r - 1, 0); i <= std::min(r + 1, height - 1); ++i)
            for (int j = std::max(c - 1, 0); j <= std::min(c + 1, width - 1); ++j)
              most = std::max<double>(
                  most, x[static_cast<std::size_t>((i * width + j) * channels + channel)]);
          slow.push_back(most);
        }
    std::vector<float> y(h * w * static_cast<std::size_t>(channels));
    conv::max_pool_3x3(x.data(), static_cast<std::size_t>(height), static_cast<std::size_t>(width),
                       static_cast<std::size_t>(channels), y.data(), 0, h);
    expect_near(y, slow, 0);
  }
}

TEST(MapSteps, DepthwiseWithGelu) {
  for (const auto& [height, width, channels] :
       {std::tuple{1, 1, 1}, {1, 4, 5}, {5, 3, 32}, {4, 7, 37}}) {
    const auto size = static_cast<std::size_t>(height * width * channels);
    const auto x = random_values(size, 5, 2),
               taps = random_values(static_cast<std::size_t>(9 * channels), 6),
               bias = random_values(static_cast<std::size_t>(channels), 7);
    std::vector<double> slow;
    for (int r = 0; r < height; ++r)
      for (int c = 0; c < width; ++c)
        for (int channel = 0; channel < channels; ++channel) {
          double sum = bias[static_cast<std::size_t>(channel)];
          for (int i = 0; i < 9; ++i) {
            const int row = r + i / 3 - 1, column = c + i % 3 - 1;
            if (row < 0 || row >= height || column < 0 || column >= width) continue;
            sum += static_cast<double>(
                       x[static_cast<std::size_t>((row * width + column) * channels + channel)]) *
                   taps[static_cast<std::size_t>(i * channels + channel)];
          }
          slow.push_back(gelu(sum));
        }
    std::vector<float> y(size);
    conv::depthwise_3x3_gelu(x.data(), static_cast<std::size_t>(height),
                             static_cast<std::size_t>(width), static_cast<std::size_t>(channels),
                             taps.data(), bias.data(), y.data(), 0,
                             static_cast<std::size_t>(height));
    expect_near(y, slow, 5e-6);
  }
}

TEST(MapSteps, GathersRowsFirst) {
  const std::vector<float> from = {1, 2, 3, 4,  //
                                   5, 6, 7, 8};
  std::vector<float> to(8);
  conv::gather_2x2(from.data(), 4, 1, to.data(), 0, 1);
  EXPECT_EQ(to, (std::vector<float>{1, 5, 2, 6, 3, 7, 4, 8}));
}

// One sample of a map [height, width, stride] at a channel.
double bilinear(const std::vector<float>& value, std::int64_t height, std::int64_t width,
                std::int64_t stride, std::int64_t channel, double x, double y) {
  const double left = std::floor(x), top = std::floor(y);
  double sum = 0;
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) {
      const double row = top + i, column = left + j;
      if (row < 0 || row >= static_cast<double>(height) || column < 0 ||
          column >= static_cast<double>(width))
        continue;
      sum += (1 - std::abs(x - column)) * (1 - std::abs(y - row)) *
             value[static_cast<std::size_t>(
                 (static_cast<std::int64_t>(row) * width + static_cast<std::int64_t>(column)) *
                     stride +
                 channel)];
    }
  return sum;
}

TEST(Deformable, SamplesAsDefined) {
  struct Case {
    std::int64_t query_height, query_width, height, width, heads, points, depth;
  };
  for (const Case& c : {Case{8, 12, 8, 12, 8, 4, 8}, Case{8, 12, 1, 2, 8, 4, 8},
                        Case{5, 7, 3, 4, 3, 2, 5}, Case{4, 4, 2, 2, 1, 3, 11}}) {
    const kernels::Deformable op{c.query_height, c.query_width, c.height, c.width,
                                 c.heads,        c.points,      c.depth};
    const std::int64_t queries = c.query_height * c.query_width, samples = op.samples();
    auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
    const auto value = random_values(size(c.height * c.width * op.channels()), 8);
    auto offsets = random_values(size(queries * samples * 2), 9, 4);
    const auto weights = random_values(size(queries * samples), 10, 3);
    offsets[0] = 1e30f;  // far outside: nothing is read
    offsets[3] = -1e30f;
    std::vector<double> slow;
    for (std::int64_t q = 0; q < queries; ++q)
      for (std::int64_t h = 0; h < c.heads; ++h)
        for (std::int64_t d = 0; d < c.depth; ++d) {
          double sum = 0, all = 0;
          for (std::int64_t p = 0; p < c.points; ++p) {
            const std::size_t at = size(q * samples + h * c.points + p);
            const double weight = std::exp(static_cast<double>(weights[at]));
            const double x = (static_cast<double>(q % c.query_width) + 0.5) /
                                 static_cast<double>(c.query_width) * static_cast<double>(c.width) -
                             0.5 + offsets[2 * at],
                         y = (static_cast<double>(q / c.query_width) + 0.5) /
                                 static_cast<double>(c.query_height) *
                                 static_cast<double>(c.height) -
                             0.5 + offsets[2 * at + 1];
            all += weight;
            sum +=
                weight * bilinear(value, c.height, c.width, op.channels(), h * c.depth + d, x, y);
          }
          slow.push_back(sum / all);
        }
    std::vector<float> out(slow.size());
    kernels::deformable_forward(op, value.data(), offsets.data(), weights.data(), out.data(), 0, 1);
    kernels::deformable_forward(op, value.data(), offsets.data(), weights.data(), out.data(), 1,
                                c.query_height);
    expect_near(out, slow, 1e-5);
  }
}

// Pixels beyond the grid are keys too, all with one q, k and v; a fixed bias; shifted or not.
TEST(WindowAttention, PixelsOutsideTheGrid) {
  constexpr std::int64_t kWindow = 7, kHeads = 2, kDepth = 32, kSide = 2 * kWindow - 1;
  constexpr std::int64_t kChannels = kHeads * kDepth;
  auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  struct Case {
    std::int64_t rows, columns, shift;
  };
  for (const Case& one : {Case{5, 9, 0}, {5, 9, 3}, {14, 8, 3}, {3, 2, 3}, {7, 7, 0}}) {
    const auto rows = one.rows, columns = one.columns, shift = one.shift;
    kernels::WindowShape shape;
    shape.batch = 1, shape.labels = 1, shape.heads = kHeads, shape.depth = kDepth;
    shape.height = (rows + kWindow - 1) / kWindow * kWindow;
    shape.width = (columns + kWindow - 1) / kWindow * kWindow;
    shape.rows = rows, shape.columns = columns, shape.window = kWindow, shape.shift = shift;
    const std::int64_t tokens = rows * columns;
    const auto qkv = random_values(size((tokens + 1) * 3 * kChannels), 11),
               bias = random_values(size(kSide * kSide * kHeads), 12);
    const kernels::PositionTables tables{.bias = bias.data()};
    std::vector<float> packed(kernels::window_tables_size(shape, tables) + 16),
        out_values(size(tokens * kChannels));
    auto aligned = [](std::vector<float>& v) {
      const auto address = reinterpret_cast<std::uintptr_t>(v.data());
      return v.data() + (64 - address % 64) % 64 / sizeof(float);
    };
    kernels::pack_window_tables(shape, tables, aligned(packed));
    std::vector<float> scratch(kernels::window_forward_scratch(shape) + 16);
    kernels::WindowForward job;
    job.shape = shape, job.tables = tables, job.packed = aligned(packed);
    job.qkv = {qkv.data(), 0, columns * 3 * kChannels, 3 * kChannels, 0, tokens * 3 * kChannels};
    job.out = {out_values.data(), 0, columns * kChannels, kChannels, 0};
    kernels::window_forward(job, 0, shape.windows(), aligned(scratch));

    // Pixel (y, x) of the rolled grid, its token and its region.
    auto token = [&](std::int64_t y, std::int64_t x) {
      const std::int64_t row = (y + shift) % shape.height, column = (x + shift) % shape.width;
      return row < rows && column < columns ? row * columns + column : tokens;
    };
    auto region = [&](std::int64_t at, std::int64_t length) {
      return shift == 0 || at < length - kWindow ? 0 : at < length - shift ? 1 : 2;
    };
    std::vector<double> slow(out_values.size());
    for (std::int64_t y = 0; y < shape.height; ++y)
      for (std::int64_t x = 0; x < shape.width; ++x) {
        if (token(y, x) == tokens) continue;
        for (std::int64_t h = 0; h < kHeads; ++h) {
          double all = 0;
          std::vector<double> sum(size(kDepth));
          for (std::int64_t i = 0; i < kWindow * kWindow; ++i) {
            const std::int64_t u = y / kWindow * kWindow + i / kWindow,
                               v = x / kWindow * kWindow + i % kWindow;
            const float* query = &qkv[size(token(y, x) * 3 * kChannels + h * kDepth)];
            const float* key = &qkv[size(token(u, v) * 3 * kChannels + kChannels + h * kDepth)];
            double logit =
                bias[size(((y - u + kWindow - 1) * kSide + x - v + kWindow - 1) * kHeads + h)];
            for (std::int64_t d = 0; d < kDepth; ++d)
              logit += static_cast<double>(query[d]) * key[d] / std::sqrt(32.0);
            if (region(y, shape.height) != region(u, shape.height) ||
                region(x, shape.width) != region(v, shape.width))
              logit -= 100;
            const double weight = std::exp(logit);
            all += weight;
            for (std::int64_t d = 0; d < kDepth; ++d) sum[size(d)] += weight * key[kChannels + d];
          }
          for (std::int64_t d = 0; d < kDepth; ++d)
            slow[size(token(y, x) * kChannels + h * kDepth + d)] = sum[size(d)] / all;
        }
      }
    expect_near(out_values, slow, 5e-6);
  }
}

}  // namespace
}  // namespace nmrf
