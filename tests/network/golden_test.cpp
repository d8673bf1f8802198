// The runtime against golden tensors, stage by stage, on every machine and without libtorch.
#include "network/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <set>
#include <utility>

#include "network/formula.h"
#include "network/formula_images.h"
#include "network/network_run.h"
#include "network/parameters.h"
#include "weights/tensor_file.h"

namespace nmrf {
namespace {

using test::KeptTrace;

// The winner's lead over the second best label at a pixel of the map, from the traced logits.
double lead_at(const KeptTrace::Entry& logits, int x, int y) {
  const auto& s = logits.shape;
  const std::int64_t cell = y / 8 * s.width + x / 8, pixel = y % 8 * 8 + x % 8;
  double best = -INFINITY, second = -INFINITY;
  for (std::int64_t k = 0; k < s.count; ++k) {
    const double score =
        logits.values[static_cast<std::size_t>((cell * s.count + k) * s.channels + pixel)] / 4.0;
    if (score > best)
      second = std::exchange(best, score);
    else
      second = std::max(second, score);
  }
  return best - second;
}

struct Comparison {
  int flips = 0;         // winners that differ
  int flips_untied = 0;  // of them, those that were no near-tie
  double largest = 0;    // difference over what is allowed, of the worst stage
  std::string where;
};

// Runs the network of a case on `parameters` and compares it with the golden tensors.
Comparison compare(const test::GoldenCase& one, Parameters& parameters) {
  const Network network(parameters, one.options);
  const auto [left, right] = test::formula_images(one.width, one.height);
  KeptTrace trace;
  const auto run = test::run_network(network, left, right, 2, &trace);
  trace.entries["disparity"].values.assign(run.disparity.data(),
                                           run.disparity.data() + run.disparity.size());
  trace.entries["seeds"].values.assign(run.seeds.begin(), run.seeds.end());

  Comparison result;
  const TensorFile file = read_tensor_file(golden_file(one));
  EXPECT_GE(file.tensors.size(), 25u);
  const auto& winners = trace.entries.at("coarse_disp8");
  const auto width = static_cast<int>(winners.shape.width);
  const std::vector<float> expected = to_floats(*file.find("coarse_disp8"));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::abs(expected[i] - winners.values[i]) <= 1e-3) continue;
    ++result.flips;
    const int x = static_cast<int>(i) % width, y = static_cast<int>(i) / width;
    result.flips_untied += lead_at(trace.entries.at("infer_score_logits"), x, y) >= 1e-4;
  }
  for (const StoredTensor& stored : file.tensors) {
    if (result.flips > 0 && (test::behind_winners(stored.name) || stored.name == "coarse_disp8"))
      continue;
    const std::vector<float> golden = to_floats(stored);
    const auto& values = trace.entries[stored.name].values;
    const auto ours = test::golden_values(stored.name, values.data(), values.size());
    EXPECT_EQ(ours.size(), golden.size()) << stored.name;
    if (ours.size() != golden.size()) continue;
    double difference = 0;
    for (std::size_t i = 0; i < ours.size(); ++i)
      difference = std::max(difference, static_cast<double>(std::abs(ours[i] - golden[i])));
    const double share = difference / test::golden_tolerance(one, stored.name);
    if (!(share <= result.largest)) result.largest = share, result.where = stored.name;
  }
  return result;
}

TEST(Golden, EveryStage) {
  for (const auto& one : test::golden_cases()) {
    FormulaParameters formula;
    const Comparison result = compare(one, formula);
    std::cout << "  " << one.name << ": " << result.flips
              << " near-ties fell the other way; largest difference " << 100 * result.largest
              << " % of what is allowed, in " << result.where << "\n";
    EXPECT_LT(result.largest, 1) << one.name << ", " << result.where;
    EXPECT_EQ(result.flips_untied, 0) << one.name;
  }
}

// Weights by formula, those below a prefix larger by one per cent.
class Nudged : public FormulaParameters {
 public:
  explicit Nudged(std::string prefix) : prefix_(std::move(prefix)) {}
  std::vector<float> take(const std::string& name, std::vector<std::int64_t> shape) override {
    std::vector<float> values = FormulaParameters::take(name, std::move(shape));
    if (name.starts_with(prefix_))
      for (float& value : values) value *= 1.01F;
    return values;
  }

 private:
  std::string prefix_;
};

// The comparison can fail: a change of one per cent in any part of the network is noticed.
TEST(Golden, AChangeOfAnyPartIsNoticed) {
  const test::GoldenCase one = test::golden_cases().back();
  std::set<std::string> parts;
  for (const auto& spec : parameters_of(one.options))
    parts.insert(spec.name.substr(0, spec.name.find('.') + 1));
  EXPECT_GE(parts.size(), 4u);
  for (const std::string& part : parts) {
    Nudged parameters(part);
    const Comparison result = compare(one, parameters);
    EXPECT_TRUE(result.largest > 1 || result.flips_untied > 0) << part;
  }
}

}  // namespace
}  // namespace nmrf
