// The runtime against golden tensors, stage by stage, on every machine and without libtorch.
#include "network/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "network/formula.h"
#include "network/formula_images.h"
#include "network/network_run.h"
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

// How many winners differ; each of them must be a near-tie.
int flips(const std::vector<float>& golden, const KeptTrace& trace) {
  const auto& winners = trace.entries.at("coarse_disp8");
  const auto width = static_cast<int>(winners.shape.width);
  int count = 0;
  for (std::size_t i = 0; i < golden.size(); ++i) {
    if (std::abs(golden[i] - winners.values[i]) <= 1e-3) continue;
    ++count;
    const int x = static_cast<int>(i) % width, y = static_cast<int>(i) / width;
    EXPECT_LT(lead_at(trace.entries.at("infer_score_logits"), x, y), 1e-4)
        << "a winner differs at " << x << ", " << y << " without a near-tie";
  }
  return count;
}

TEST(Golden, EveryStage) {
  for (const auto& one : test::golden_cases()) {
    SCOPED_TRACE(one.name);
    FormulaParameters formula;
    const Network network(formula, one.options);
    const auto [left, right] = test::formula_images(one.width, one.height);
    KeptTrace trace;
    const auto run = test::run_network(network, left, right, 2, &trace);
    auto& map = trace.entries["disparity"];
    map.values.assign(run.disparity.data(), run.disparity.data() + run.disparity.size());
    trace.entries["seeds"].values.assign(run.seeds.begin(), run.seeds.end());

    const TensorFile file = read_tensor_file(golden_file(one));
    const int flipped = flips(to_floats(*file.find("coarse_disp8")), trace);
    double largest = 0;
    std::string where;
    for (const StoredTensor& stored : file.tensors) {
      const auto found = trace.entries.find(stored.name);
      ASSERT_NE(found, trace.entries.end()) << stored.name;
      if (flipped > 0 && (test::behind_winners(stored.name) || stored.name == "coarse_disp8"))
        continue;
      const std::vector<float> golden = to_floats(stored),
                               ours = test::golden_values(stored.name, found->second.values.data(),
                                                          found->second.values.size());
      ASSERT_EQ(ours.size(), golden.size()) << stored.name;
      double difference = 0;
      for (std::size_t i = 0; i < ours.size(); ++i)
        difference = std::max(difference, static_cast<double>(std::abs(ours[i] - golden[i])));
      EXPECT_LT(difference, test::golden_tolerance(stored.name)) << stored.name;
      const double share = difference / test::golden_tolerance(stored.name);
      if (share > largest) largest = share, where = stored.name;
    }
    EXPECT_GE(file.tensors.size(), 25u);
    std::cout << "  " << one.name << ": " << file.tensors.size() << " stages, " << flipped
              << " near-ties fell the other way; largest difference " << 100 * largest
              << " % of what is allowed, in " << where << "\n";
  }
}

}  // namespace
}  // namespace nmrf
