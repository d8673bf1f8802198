#include "core/arena.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <new>
#include <numeric>

namespace nmrf {
namespace {

constexpr std::size_t kHugePage = 2 << 20;

std::size_t rounded(std::size_t bytes, std::size_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

}  // namespace

void MemoryBlock::reserve(std::size_t bytes) {
  if (bytes <= bytes_) return;
  release();
  bytes = rounded(bytes, kHugePage);
#if defined(__linux__)
  void* all =
      mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) throw std::bad_alloc();
  auto* begin = static_cast<std::byte*>(all);
  const std::size_t before =
      (kHugePage - reinterpret_cast<std::uintptr_t>(all) % kHugePage) % kHugePage;
  if (before > 0) munmap(begin, before);
  munmap(begin + before + bytes, kHugePage - before);
  madvise(begin + before, bytes, MADV_HUGEPAGE);  // only a wish
  data_ = begin + before;
#else
  data_ = static_cast<std::byte*>(std::aligned_alloc(Arena::kAlignment, bytes));
  if (!data_) throw std::bad_alloc();
#endif
  bytes_ = bytes;
}

void MemoryBlock::release() {
  if (!data_) return;
#if defined(__linux__)
  munmap(data_, bytes_);
#else
  std::free(data_);
#endif
  data_ = nullptr;
  bytes_ = 0;
}

void Arena::begin_planning() {
  plan_ = nullptr;
  lives_.clear();
  clock_ = 0;
}

// Greedy by size: the largest buffers first, each at the lowest place that is free for its life.
ArenaPlan Arena::plan() {
  std::vector<std::size_t> order(lives_.size()), placed;
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return lives_[a].bytes > lives_[b].bytes; });
  ArenaPlan result;
  result.offsets.resize(lives_.size());
  for (std::size_t index : order) {
    const Life& life = lives_[index];
    std::size_t at = 0;
    // `placed` is ordered by offset.
    for (std::size_t other : placed) {
      const Life& there = lives_[other];
      if (there.end <= life.begin || life.end <= there.begin) continue;
      if (result.offsets[other] >= at + life.bytes) break;
      at = std::max(at, result.offsets[other] + there.bytes);
    }
    result.offsets[index] = at;
    result.bytes = std::max(result.bytes, at + life.bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), index,
                                   [&](std::size_t a, std::size_t b) {
                                     return result.offsets[a] < result.offsets[b];
                                   }),
                  index);
  }
  return result;
}

void Arena::begin(const ArenaPlan& plan) {
  block_.reserve(plan.bytes);
  plan_ = &plan;
  next_ = 0;
}

std::byte* Arena::take(std::size_t bytes, std::size_t& id) {
  if (!planning()) {
    id = next_++;
    return block_.data() + plan_->offsets[id];
  }
  id = lives_.size();
  lives_.push_back({rounded(std::max<std::size_t>(bytes, 1), kAlignment), clock_++, SIZE_MAX});
  return nullptr;
}

void Arena::give_back(std::size_t id) {
  if (planning()) lives_[id].end = clock_++;
}

}  // namespace nmrf
