#include "core/thread_pool.h"

#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>
#include <vector>

namespace nmrf {
namespace {

TEST(ThreadPool, EveryUnitOnce) {
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (std::int64_t units : {0, 1, 7, 1000}) {
      std::vector<int> seen(static_cast<std::size_t>(units), 0);
      pool.share(units, 3, [&](std::int64_t begin, std::int64_t end, int slot) {
        EXPECT_TRUE(slot >= 0 && slot < threads);
        for (std::int64_t i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
      });
      for (int count : seen) EXPECT_EQ(count, 1);
    }
  }
}

TEST(ThreadPool, PiecesHaveTheirLeastSize) {
  ThreadPool pool(4);
  std::atomic<std::int64_t> smallest{1000};
  pool.share(100, 30, [&](std::int64_t begin, std::int64_t end, int) {
    std::int64_t known = smallest;
    while (end - begin < known && !smallest.compare_exchange_weak(known, end - begin)) {
    }
  });
  EXPECT_GE(smallest, 30);
}

// No two threads of one call have the same slot at the same time.
TEST(ThreadPool, SlotsAreDistinct) {
  ThreadPool pool(3);
  std::vector<std::atomic<int>> inside(3);
  std::atomic<bool> clash{false};
  for (int round = 0; round < 50; ++round)
    pool.share(500, 1, [&](std::int64_t, std::int64_t, int slot) {
      if (++inside[static_cast<std::size_t>(slot)] > 1) clash = true;
      --inside[static_cast<std::size_t>(slot)];
    });
  EXPECT_FALSE(clash);
}

TEST(ThreadPool, ManyCallersAtOnce) {
  ThreadPool pool(3);
  std::vector<std::thread> callers;
  std::atomic<std::int64_t> total{0};
  for (int caller = 0; caller < 8; ++caller)
    callers.emplace_back([&] {
      for (int round = 0; round < 100; ++round)
        pool.share(200, 1,
                   [&](std::int64_t begin, std::int64_t end, int) { total += end - begin; });
    });
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(total, 8 * 100 * 200);
}

TEST(ThreadPool, NestedWorkRunsInPlace) {
  ThreadPool pool(3);
  std::atomic<int> total{0};
  pool.share(20, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i)
      pool.share(10, 1,
                 [&](std::int64_t b, std::int64_t e, int) { total += static_cast<int>(e - b); });
  });
  EXPECT_EQ(total, 200);
}

TEST(ThreadPool, ExceptionsReachTheCaller) {
  ThreadPool pool(3);
  for (int round = 0; round < 20; ++round)
    EXPECT_THROW(pool.share(100, 1,
                            [](std::int64_t begin, std::int64_t, int) {
                              if (begin >= 50) throw std::runtime_error("no");
                            }),
                 std::runtime_error);
  int total = 0;
  pool.share(1, 1, [&](std::int64_t, std::int64_t, int) { total = 1; });
  EXPECT_EQ(total, 1) << "usable afterwards";
}

}  // namespace
}  // namespace nmrf
