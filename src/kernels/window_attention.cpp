#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/window_attention.cpp"
#include <hwy/foreach_target.h>

#include "kernels/window_kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nmrf::kernels::HWY_NAMESPACE {

// Calls visit with the kernel made for this shape: wide panels unless they waste many lanes.
template <class Visit>
size_t with_kernel(const WindowShape& s, const PositionTables& tables, const float* packed,
                   bool backward, float* scratch, const Visit& visit) {
  constexpr size_t kWide = 3, kNarrow = kLanes == 16 ? 1 : 2;
  auto run = [&](auto kernel) {
    visit(kernel);
    return kernel.size();
  };
  const size_t vectors = (s.tokens() + kLanes - 1) / kLanes;
  const bool wide = (round_up(vectors, kWide) - vectors) * 4 <= vectors;
  if (s.depth <= 16)
    return wide ? run(WindowKernel<kWide, 16>(s, tables, packed, backward, scratch))
                : run(WindowKernel<kNarrow, 16>(s, tables, packed, backward, scratch));
  return wide ? run(WindowKernel<kWide, 32>(s, tables, packed, backward, scratch))
              : run(WindowKernel<kNarrow, 32>(s, tables, packed, backward, scratch));
}

size_t WindowScratch(const WindowShape& shape, bool backward) {
  return with_kernel(shape, {}, nullptr, backward, nullptr, [](auto&) {});
}

void WindowForwardRange(const WindowForward& job, int64_t begin, int64_t end, float* scratch) {
  with_kernel(job.shape, job.tables, job.packed, false, scratch,
              [&](auto& kernel) { kernel.forward(job, begin, end); });
}

void WindowBackwardRange(const WindowBackward& job, const PositionGradients& grads, int64_t begin,
                         int64_t end, float* scratch) {
  with_kernel(job.shape, job.tables, job.packed, true, scratch,
              [&](auto& kernel) { kernel.backward(job, grads, begin, end); });
}

}  // namespace nmrf::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nmrf::kernels {

HWY_EXPORT(WindowScratch);
HWY_EXPORT(WindowForwardRange);
HWY_EXPORT(WindowBackwardRange);

size_t window_forward_scratch(const WindowShape& shape) {
  return HWY_DYNAMIC_DISPATCH(WindowScratch)(shape, false);
}
size_t window_backward_scratch(const WindowShape& shape) {
  return HWY_DYNAMIC_DISPATCH(WindowScratch)(shape, true);
}
void window_forward(const WindowForward& job, int64_t begin, int64_t end, float* scratch) {
  HWY_DYNAMIC_DISPATCH(WindowForwardRange)(job, begin, end, scratch);
}
void window_backward(const WindowBackward& job, const PositionGradients& grads, int64_t begin,
                     int64_t end, float* scratch) {
  HWY_DYNAMIC_DISPATCH(WindowBackwardRange)(job, grads, begin, end, scratch);
}

}  // namespace nmrf::kernels
#endif
