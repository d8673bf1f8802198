#include "train/matching.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/rng.h"

namespace nmrf::train {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// As the supplement has it, by repeated search.
std::vector<double> naive_suppression(const std::vector<double>& proposals,
                                      std::vector<double> modals) {
  auto proximity = [&](double modal) {
    double closest = 1e300;
    for (double proposal : proposals) closest = std::min(closest, std::abs(proposal - modal));
    return closest;
  };
  std::vector<double> kept;
  while (!modals.empty()) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < modals.size(); ++i)
      if (proximity(modals[i]) < proximity(modals[best])) best = i;
    const double winner = modals[best];
    kept.push_back(winner);
    std::erase_if(modals, [&](double other) { return std::abs(other - winner) < 8; });
  }
  return kept;
}

// The least cost of all ways to pair min(n, k) of each, by trying every one.
double least_cost(const std::vector<double>& proposals, const std::vector<double>& modals,
                  std::size_t next, unsigned used, int left) {
  if (left == 0) return 0;
  double best = 1e300;
  for (std::size_t m = next; m + static_cast<std::size_t>(left) <= modals.size(); ++m)
    for (std::size_t p = 0; p < proposals.size(); ++p) {
      if (used >> p & 1u) continue;
      const double gap = std::abs(modals[m] - proposals[p]);
      const double own = gap < 1 ? gap * gap / 2 : gap - 0.5;
      best = std::min(best, own + least_cost(proposals, modals, m + 1, used | 1u << p, left - 1));
    }
  return best;
}

std::vector<double> match(const std::vector<double>& proposals, const std::vector<double>& modals,
                          int* pairs = nullptr) {
  std::vector<double> targets(proposals.size());
  int count = ModalMatcher().match(proposals, modals, targets);
  if (pairs) *pairs = count;
  return targets;
}

void expect_targets(const std::vector<double>& got, const std::vector<double>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(wanted[i]))
      EXPECT_TRUE(std::isnan(got[i])) << i << ": " << got[i];
    else
      EXPECT_EQ(got[i], wanted[i]) << i;
  }
}

TEST(Matching, ExampleOfTheSupplement) {
  int pairs = 0;
  expect_targets(match({1.4, 10.2, 10.8, 11.2}, {1.1, 1.8}, &pairs), {1.1, kNone, kNone, kNone});
  EXPECT_EQ(pairs, 1);
  // The order of the modals does not matter: 1.1 is closer to 1.4.
  expect_targets(match({1.4, 10.2, 10.8, 11.2}, {1.8, 1.1}), {1.1, kNone, kNone, kNone});
}

TEST(Matching, AgreesWithEveryPermutation) {
  Rng rng(11);
  ModalMatcher matcher;
  for (int round = 0; round < 6000; ++round) {
    const auto k = static_cast<std::size_t>(rng.integer(1, 6));
    const auto n = static_cast<std::size_t>(rng.integer(0, 4));
    const double range = rng.uniform(2, 80);
    const bool whole = rng.chance(0.4);  // whole numbers: ties, distances of exactly 8
    auto draw = [&] {
      const double value = rng.uniform(0, range);
      return whole ? std::round(value) : value;
    };
    std::vector<double> proposals(k), modals(n), targets(k, 5);
    for (double& value : proposals) value = draw();
    for (double& value : modals) value = draw();
    const auto kept = naive_suppression(proposals, modals);
    const int wanted = static_cast<int>(std::min(k, kept.size()));
    ASSERT_EQ(matcher.match(proposals, modals, targets), wanted);
    double cost = 0;
    std::vector<double> used;
    for (std::size_t j = 0; j < k; ++j)
      if (!std::isnan(targets[j])) {
        cost += smooth_l1(targets[j] - proposals[j]);
        used.push_back(targets[j]);
      }
    ASSERT_EQ(static_cast<int>(used.size()), wanted);
    std::sort(used.begin(), used.end());
    EXPECT_EQ(std::adjacent_find(used.begin(), used.end()), used.end()) << "one to one";
    for (double modal : used)
      EXPECT_NE(std::find(kept.begin(), kept.end(), modal), kept.end()) << "a suppressed modal";
    EXPECT_NEAR(cost, least_cost(proposals, kept, 0, 0, wanted), 1e-9) << "round " << round;
  }
}

TEST(Matching, SuppressionIsStrictAndStable) {
  // Exactly 8 px apart: both stay.
  expect_targets(match({10, 20}, {10, 18}), {10, 18});
  expect_targets(match({10, 20}, {10, 17.9}), {10, kNone});
  // Equally close to the proposals: the first of the list (the larger segment) wins.
  expect_targets(match({10}, {12, 8}), {12});
  expect_targets(match({10}, {8, 12}), {8});
}

TEST(Matching, OrderIsKeptWhereCrossingCostsTheSame) {
  // Both proposals lie above both modals: every pairing sums up to the same.
  expect_targets(match({40, 50}, {10, 20}), {10, 20});
  expect_targets(match({50, 40}, {10, 20}), {20, 10});
  // Equal proposals: the first of them is taken.
  expect_targets(match({7, 7, 7}, {6}), {6, kNone, kNone});
}

TEST(Matching, FewerProposalsThanModals) {
  int pairs = 0;
  expect_targets(match({29}, {10, 20, 30, 40}, &pairs), {30});
  EXPECT_EQ(pairs, 1);
  expect_targets(match({41, 12}, {10, 20, 30, 40}), {40, 10});
  expect_targets(match({3, 4}, {}, &pairs), {kNone, kNone});
  EXPECT_EQ(pairs, 0);
}

TEST(Matching, ProposalsThatAreNoNumbersShowInTheLoss) {
  for (double bad : {kNone, std::numeric_limits<double>::infinity()}) {
    int pairs = 0;
    auto targets = match({bad, bad, bad}, {10, 30}, &pairs);
    EXPECT_EQ(pairs, 2);
    EXPECT_EQ(std::count_if(targets.begin(), targets.end(), [](double t) { return t == t; }), 2);
  }
}

}  // namespace
}  // namespace nmrf::train
