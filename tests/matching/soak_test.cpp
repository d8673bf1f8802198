// Many matches of mixed sizes from many threads while models come and go: results stay the same,
// memory stays flat. NMRF_SOAK=2000 asks for more matches than the default.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <thread>
#include <vector>

#include "core/rng.h"
#include "network/formula_images.h"
#include "nmrf/matcher.h"
#include "support/sanitized.h"

namespace nmrf {
namespace {

constexpr int kThreads = 8, kRounds = 10;
constexpr std::pair<int, int> kSizes[] = {{48, 40}, {64, 48}, {57, 33}, {96, 40}, {81, 64}};
constexpr const char* kModels[] = {"formula:fast", "formula:fast"};
const std::vector<std::string> kSettings[] = {{}, {"seeds.labels=2"}};

Matcher load(std::size_t model) {
  MatcherOptions options;
  options.threads = 1 + static_cast<int>(model);
  options.max_disp = 64;
  options.set = kSettings[model];
  return Matcher::load(kModels[model], options);
}

// A multiple of kThreads * kRounds.
int matches() {
  const char* wanted = std::getenv("NMRF_SOAK");
  const int count = wanted ? std::atoi(wanted) : 400;
  return std::max(count / (kThreads * kRounds), 1) * kThreads * kRounds;
}

std::size_t heap_bytes() {
  const auto info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

TEST(Soak, ManyMatchesManyThreads) {
  struct Case {
    Image left, right;
    FloatMap expected[2];
  };
  std::vector<Case> cases;
  for (const auto& [width, height] : kSizes) {
    auto [left, right] = test::formula_images(width, height);
    cases.push_back({std::move(left), std::move(right), {}});
  }
  for (std::size_t m = 0; m < 2; ++m) {
    const Matcher matcher = load(m);
    for (Case& one : cases) one.expected[m] = matcher.match(one.left.view(), one.right.view()).map;
  }
  ASSERT_NE(cases[0].expected[0], cases[0].expected[1]) << "two models";

  const int count = matches();
  std::atomic<int> wrong{0}, done{0};
  std::vector<std::size_t> heap;
  for (int round = 0; round < kRounds; ++round) {
    const Matcher matchers[2] = {load(0), load(1)};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        Rng rng(static_cast<std::uint64_t>(1000 * round + t));
        Disparity result;
        for (int i = 0; i < count / kRounds / kThreads; ++i) {
          const Case& one = cases[static_cast<std::size_t>(rng.integer(0, std::size(kSizes) - 1))];
          const std::size_t m = rng.chance(0.5) ? 1 : 0;
          matchers[m].match(one.left.view(), one.right.view(), {}, result);
          wrong += result.map != one.expected[m];
          ++done;
        }
      });
    for (auto& thread : threads) thread.join();
    for (const auto& matcher : matchers) matcher.release_idle();
    heap.push_back(heap_bytes());
  }
  EXPECT_EQ(done, count);
  EXPECT_EQ(wrong, 0);
  const auto [least, most] = std::minmax_element(heap.begin() + 1, heap.end());
  std::cout << "  " << done << " matches, " << kRounds << " loads of two models; heap after each "
            << static_cast<double>(*least) / 1e6 << " to " << static_cast<double>(*most) / 1e6
            << " MB\n";
  // The first round fills what stays: the allocator's pools, the run time's tables.
  // Sanitizers keep what was freed.
  if (!test::kSanitized) {
    EXPECT_LT(heap.back(), heap[1] + 500'000);
  }
}

}  // namespace
}  // namespace nmrf
