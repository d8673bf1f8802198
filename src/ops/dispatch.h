// Chooses between the plain ATen form of an operator and its fast CPU kernel.
#pragma once

#include <torch/torch.h>

namespace nmrf::ops {

// Fast kernels are used by default; off, every operator takes its plain form (also NMRF_PLAIN=1 in
// the environment). Process-wide, safe to change between calls.
void set_fast(bool on);
bool fast_enabled();

// For the scope of a test or a comparison.
class FastGuard {
 public:
  explicit FastGuard(bool on) : before_(fast_enabled()) { set_fast(on); }
  ~FastGuard() { set_fast(before_); }
  FastGuard(const FastGuard&) = delete;
  FastGuard& operator=(const FastGuard&) = delete;

 private:
  bool before_;
};

// True when the fast kernels are on and every tensor is a float32 CPU tensor.
template <class... Tensors>
bool use_fast(const Tensors&... tensors) {
  return fast_enabled() && ((tensors.is_cpu() && tensors.scalar_type() == torch::kFloat) && ...);
}

}  // namespace nmrf::ops
