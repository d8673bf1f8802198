// One of several processes that share a list of work.
#pragma once

#include <cstdint>

namespace nmrf {

// This process among those that share a run, from the environment variables RANK and WORLD_SIZE
// (the ones of distributed training). Item i belongs to rank i mod world.
struct Shard {
  int rank = 0;
  int world = 1;
  // Throws Error(kUsage) for values that are no numbers or contradict each other.
  static Shard from_environment();
  bool owns(std::int64_t item) const { return item % world == rank; }
};

}  // namespace nmrf
