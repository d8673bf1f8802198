#include "core/cores.h"

#include <fstream>
#include <string>

#if defined(__linux__)
#include <sched.h>
#endif

#include <algorithm>
#include <thread>

namespace nmrf {

int usable_cores() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
#endif
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

std::optional<std::uint64_t> free_memory() {
  std::ifstream file("/proc/meminfo");
  std::optional<std::uint64_t> all;
  std::string key, unit;
  for (std::uint64_t kilobytes = 0; file >> key >> kilobytes;) {
    if (key == "MemAvailable:" || key == "SwapFree:") all = all.value_or(0) + kilobytes * 1024;
    std::getline(file, unit);
  }
  return all;
}

}  // namespace nmrf
