#include "train/ops/dispatch.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace nmrf::ops {
namespace {

std::atomic<bool>& flag() {
  static std::atomic<bool> on = [] {
    const char* plain = std::getenv("NMRF_PLAIN");
    return !(plain && std::strcmp(plain, "0") != 0 && plain[0] != '\0');
  }();
  return on;
}

}  // namespace

void set_fast(bool on) { flag() = on; }
bool fast_enabled() { return flag(); }

}  // namespace nmrf::ops
