// Preloaded into a native program (LD_PRELOAD): its kernels run on 128-bit vectors without fused
// multiply-add, which is what WebAssembly has.
#include <hwy/targets.h>

namespace {

const bool held = [] {
  hwy::DisableTargets(~static_cast<int64_t>(HWY_SSE4));
  return true;
}();

}  // namespace
