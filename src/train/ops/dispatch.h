// Chooses between the plain ATen form of an operator and its fast CPU kernel.
#pragma once

#include <torch/torch.h>

#include <initializer_list>

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

// True when autograd is to record an operator of these inputs; undefined ones do not count.
inline bool wants_gradient(std::initializer_list<torch::Tensor> inputs) {
  if (!torch::GradMode::is_enabled()) return false;
  for (const auto& x : inputs)
    if (x.defined() && x.requires_grad()) return true;
  return false;
}

// For hand-written backward passes, which are not differentiable themselves.
inline void refuse_second_derivative() {
  TORCH_CHECK(!torch::GradMode::is_enabled(),
              "the fast kernels have no second derivative; use the plain form (NMRF_PLAIN=1)");
}

}  // namespace nmrf::ops
