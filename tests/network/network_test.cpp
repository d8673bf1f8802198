// The network for inference, on weights by formula.
#include "network/network.h"

#include <gtest/gtest.h>

#include <set>

#include "network/flops.h"
#include "network/formula.h"
#include "network/formula_images.h"
#include "network/network_run.h"
#include "support/support.h"

namespace nmrf {
namespace {

Network by_formula(const ModelOptions& options) {
  FormulaParameters formula;
  return Network(formula, options);
}

TEST(Formula, FirstValues) {
  FormulaParameters formula;
  const auto values = formula.take("backbone.conv1.weight", {64, 3, 7, 7});
  EXPECT_NEAR(values[0], 0.015656795, 1e-8);
  EXPECT_NEAR(values[1], 0.083448783, 1e-8);
  EXPECT_NEAR(values[2], 0.033577919, 1e-8);
}

// Spots of the published network's answer for formula weights and images, so that parity is checked
// without any file. {height, width, row, column, disparity}
TEST(Formula, DisparityOfThePublishedNetwork) {
  test::expect_spots(by_formula(preset_options("paper")), {
#include "network/formula_spots.inc"
                                                          });
}

TEST(Parameters, OfThePublishedNetwork) {
  std::int64_t count = 0;
  const auto parameters = parameters_of(preset_options("paper"));
  std::set<std::string> names;
  for (const auto& parameter : parameters) {
    count += parameter.elements();
    names.insert(parameter.name);
  }
  EXPECT_EQ(count, 6113210);
  EXPECT_EQ(parameters.size(), 340u);
  EXPECT_EQ(names.size(), 340u);
}

TEST(Flops, OfThePresets) {
  EXPECT_NEAR(total_flops(count_flops(preset_options("paper"), 640, 480)) / 1e9, 363, 1);
  EXPECT_NEAR(total_flops(count_flops(preset_options("paper"), 1248, 376)) / 1e9, 562.8, 1);
  EXPECT_LE(total_flops(count_flops(preset_options("fast"), 640, 480)) / 1e9, 60);
}

// Planned and run with any number of threads, on sizes that pad every grid, the map is the same.
TEST(Network, ThreadsDoNotChangeTheMap) {
  for (const char* preset : {"paper", "fast"}) {
    const Network network = by_formula(preset_options(preset));
    const auto [left, right] = test::formula_images(131, 50);
    const auto expected = test::run_network(network, left, right, 1);
    for (int threads : {2, 3, 5}) {
      const auto run = test::run_network(network, left, right, threads);
      EXPECT_EQ(run.disparity, expected.disparity) << preset << ", " << threads << " threads";
      EXPECT_EQ(run.seeds, expected.seeds);
      EXPECT_EQ(run.labels, expected.labels);
    }
  }
}

TEST(Network, LargestDisparityIsARunTimeChoice) {
  Network network = by_formula(preset_options("fast"));
  const auto [left, right] = test::formula_images(96, 64);
  const auto wide = test::run_network(network, left, right);
  network.set_max_disp(64);
  const auto narrow = test::run_network(network, left, right);
  EXPECT_FALSE(wide.seeds == narrow.seeds);
  for (std::int64_t seed : narrow.seeds) EXPECT_LT(seed, 8);
  test::error_of(ErrorKind::kModel, [&] { network.set_max_disp(63); });
}

}  // namespace
}  // namespace nmrf
