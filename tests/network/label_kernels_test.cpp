// Kernels on labels against slow computations, on sizes that end inside vectors and on every
// instruction set.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/rng.h"
#include "kernels/fine_search.h"
#include "kernels/label_feature.h"
#include "network/simd_targets.h"

namespace nmrf {
namespace {

std::vector<float> random_values(std::int64_t count, std::uint64_t seed, double low = -1,
                                 double high = 1) {
  Rng rng(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(rng.uniform(low, high));
  return values;
}

void expect_near(const std::vector<float>& ours, const std::vector<double>& slow, double most) {
  ASSERT_EQ(ours.size(), slow.size());
  for (std::size_t i = 0; i < ours.size(); ++i) ASSERT_NEAR(ours[i], slow[i], most) << "at " << i;
}

// The right view read at column `at` of a row, between the columns; 0 outside.
double read(const std::vector<float>& map, std::int64_t row, std::int64_t width,
            std::int64_t channels, std::int64_t channel, double at) {
  double value = 0;
  const double lower = std::floor(at);
  for (int side = 0; side < 2; ++side) {
    const double column = lower + side, weight = side ? at - lower : 1 - (at - lower);
    if (!(column >= 0 && column <= static_cast<double>(width - 1))) continue;
    value += weight * map[static_cast<std::size_t>(
                          (row * width + static_cast<std::int64_t>(column)) * channels + channel)];
  }
  return value;
}

TEST(LabelFeature, FastIsPlain) {
  struct Case {
    std::int64_t width, labels, channels1, channels2, groups, radius;
    bool own;
  };
  for (const Case& c : {Case{9, 2, 32, 96, 16, 2, true}, Case{7, 4, 0, 96, 16, 2, true},
                        Case{5, 1, 5, 33, 11, 1, false}, Case{6, 3, 64, 256, 32, 0, true},
                        Case{11, 1, 3, 24, 4, 3, true}, Case{4, 2, 7, 20, 20, 1, true},
                        Case{8, 2, 16, 0, 0, 0, true}, Case{6, 2, 0, 40, 20, 1, true}}) {
    constexpr std::int64_t kRows = 3;
    kernels::FeatureShape s;
    s.batch = 1, s.height = kRows, s.width = c.width, s.labels = c.labels;
    s.channels1 = c.channels1, s.channels2 = c.channels2, s.groups = c.groups;
    s.radius = c.radius, s.own = c.own;
    const std::int64_t pixels = kRows * c.width, size = c.groups ? c.channels2 / c.groups : 0;
    const auto left1 = random_values(pixels * c.channels1, 1),
               right1 = random_values(pixels * c.channels1, 2),
               left2 = random_values(pixels * c.channels2, 3),
               right2 = random_values(pixels * c.channels2, 4);
    auto labels = random_values(pixels * c.labels, 5, -4, static_cast<double>(c.width + 4));
    labels[0] = std::numeric_limits<float>::quiet_NaN();
    labels[1] = 1e30f;
    labels.back() = 2;  // on a column
    std::vector<double> slow;
    for (std::int64_t p = 0; p < pixels; ++p)
      for (std::int64_t j = 0; j < c.labels; ++j) {
        const std::int64_t row = p / c.width, x = p % c.width;
        const double at =
            static_cast<double>(x) - labels[static_cast<std::size_t>(p * c.labels + j)];
        if (c.own)
          for (std::int64_t i = 0; i < c.channels1; ++i)
            slow.push_back(left1[static_cast<std::size_t>(p * c.channels1 + i)]);
        for (std::int64_t i = 0; i < c.channels1; ++i)
          slow.push_back(read(right1, row, c.width, c.channels1, i, at));
        for (std::int64_t around = -c.radius; c.groups > 0 && around <= c.radius; ++around)
          for (std::int64_t g = 0; g < c.groups; ++g) {
            double sum = 0;
            for (std::int64_t i = g * size; i < (g + 1) * size; ++i)
              sum += left2[static_cast<std::size_t>(p * c.channels2 + i)] *
                     read(right2, row, c.width, c.channels2, i, at + static_cast<double>(around));
            slow.push_back(sum / static_cast<double>(size));
          }
      }
    auto view = [&](const std::vector<float>& map, std::int64_t channels) {
      return kernels::PixelMap{map.data(), 0, c.width * channels, channels};
    };
    const kernels::FeatureMapsIn in{view(left1, c.channels1), view(right1, c.channels1),
                                    view(left2, c.channels2), view(right2, c.channels2),
                                    labels.data()};
    on_every_target([&] {
      std::vector<float> ours(slow.size());
      kernels::label_feature_forward(s, in, ours.data(), 0, 1);
      kernels::label_feature_forward(s, in, ours.data(), 1, kRows);
      expect_near(ours, slow, 2e-6);
    });
  }
}

TEST(FineSearchKernels, CandidatesArePlain) {
  for (const std::int64_t cells : {1, 3, 5})
    for (const std::int64_t count : {1, 3, 4, 6}) {
      const auto disparity = random_values(cells * count * 64, 6, 0, 40),
                 score = random_values(cells * count * 64, 7, -30, 30);
      const auto size = static_cast<std::size_t>(4 * cells * count);
      std::vector<double> labels(size), priors(size);
      for (std::int64_t cell = 0; cell < cells; ++cell)
        for (std::int64_t pixel = 0; pixel < 64; ++pixel) {
          auto at = [&](std::int64_t l) {
            return static_cast<std::size_t>((cell * count + l) * 64 + pixel);
          };
          double sum = 0;
          for (std::int64_t l = 0; l < count; ++l) sum += std::exp(double{score[at(l)]});
          for (std::int64_t l = 0; l < count; ++l) {
            const auto to = static_cast<std::size_t>(
                (pixel / 32 * 2 * cells + 2 * cell + pixel % 8 / 4) * count + l);
            labels[to] += double{disparity[at(l)]} / 8;
            priors[to] += std::exp(double{score[at(l)]}) / sum / 16;
          }
        }
      for (double& prior : priors) prior = std::log(std::max(prior, 1e-6));
      on_every_target([&] {
        std::vector<float> ours(size), log_prior(size);
        kernels::block_candidates(disparity.data(), score.data(), cells, count, ours.data(),
                                  log_prior.data());
        expect_near(ours, labels, 2e-5);
        expect_near(log_prior, priors, 2e-5);
      });
    }
}

TEST(FineSearchKernels, PlacesArePlain) {
  for (const std::int64_t width : {1, 7, 40})
    for (const std::int64_t count : {1, 3, 4})
      for (const std::int64_t places : {3, 5}) {
        const std::int64_t tokens = width * count;
        const auto logits = random_values(tokens * places, 8, -9, 9),
                   labels = random_values(tokens, 9, -3, 30),
                   prior = random_values(tokens, 10, -9, 0);
        constexpr float kTrust = 0.7f;
        std::vector<double> slow;
        for (std::int64_t x = 0; x < width; ++x) {
          double best = 0, most = -1e30;
          for (std::int64_t t = x * count; t < (x + 1) * count; ++t) {
            double sum = 0, mean = 0;
            for (std::int64_t i = 0; i < places; ++i) {
              const double weight =
                  std::exp(double{logits[static_cast<std::size_t>(t * places + i)]});
              sum += weight;
              mean += weight * static_cast<double>(places / 2 - i);
            }
            const double mass = std::log(sum) + kTrust * prior[static_cast<std::size_t>(t)];
            if (mass <= most) continue;
            most = mass;
            best = labels[static_cast<std::size_t>(t)] + mean / sum;
          }
          slow.push_back(std::max(0.0, best));
        }
        on_every_target([&] {
          std::vector<float> ours(static_cast<std::size_t>(width));
          kernels::best_places(logits.data(), labels.data(), prior.data(), kTrust, width, count,
                               places, ours.data());
          expect_near(ours, slow, 2e-5);
        });
      }
}

}  // namespace
}  // namespace nmrf
