#include "core/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace nmrf {
namespace {

// Three steps of which each needs only the one before.
std::size_t chain(Arena& arena, std::vector<std::byte*>* places = nullptr) {
  std::size_t steps = 0;
  Buffer<float> last(arena, 1000);
  for (std::size_t size : {2000u, 500u, 3000u}) {
    Buffer<float> next(arena, size);
    if (places) {
      places->push_back(reinterpret_cast<std::byte*>(next.data()));
      std::fill_n(next.data(), size, 1.0f);
    }
    last = std::move(next);
    ++steps;
  }
  return steps;
}

TEST(Arena, BuffersThatDoNotMeetShareMemory) {
  MemoryBlock block;
  Arena arena(block);
  arena.begin_planning();
  EXPECT_TRUE(arena.planning());
  chain(arena);
  const ArenaPlan plan = arena.plan();
  EXPECT_EQ(plan.offsets.size(), 4u);
  // The two largest neighbours are 500 and 3000 floats, or 1000 and 2000.
  EXPECT_LE(plan.bytes, 14400u);
  EXPECT_GE(plan.bytes, 14000u);
  EXPECT_EQ(block.size(), 0u) << "planning takes no memory";

  std::vector<std::byte*> first, second;
  arena.begin(plan);
  EXPECT_FALSE(arena.planning());
  chain(arena, &first);
  arena.begin(plan);
  chain(arena, &second);
  EXPECT_EQ(first, second);
  for (const auto* place : first)
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(place) % Arena::kAlignment, 0u);
}

TEST(Arena, BuffersAliveTogetherDoNotOverlap) {
  MemoryBlock block;
  Arena arena(block);
  auto run = [&](std::vector<std::pair<std::byte*, std::size_t>>* places) {
    Buffer<char> a(arena, 100), b(arena, 1), c(arena, 5000);
    b.reset();
    Buffer<double> d(arena, 77);
    if (!places) return;
    places->push_back({reinterpret_cast<std::byte*>(a.data()), 100});
    places->push_back({reinterpret_cast<std::byte*>(c.data()), 5000});
    places->push_back({reinterpret_cast<std::byte*>(d.data()), 77 * sizeof(double)});
  };
  arena.begin_planning();
  run(nullptr);
  const ArenaPlan plan = arena.plan();
  arena.begin(plan);
  std::vector<std::pair<std::byte*, std::size_t>> places;
  run(&places);
  std::sort(places.begin(), places.end());
  for (std::size_t i = 0; i + 1 < places.size(); ++i)
    EXPECT_LE(places[i].first + places[i].second, places[i + 1].first);
}

TEST(MemoryBlock, GrowsAndReleases) {
  MemoryBlock block;
  block.reserve(100);
  EXPECT_GE(block.size(), 100u);
  std::memset(block.data(), 1, block.size());
  const std::size_t before = block.size();
  block.reserve(10);
  EXPECT_EQ(block.size(), before);
  block.reserve(before + 1);
  EXPECT_GT(block.size(), before);
  block.release();
  EXPECT_EQ(block.size(), 0u);
}

}  // namespace
}  // namespace nmrf
