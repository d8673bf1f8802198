#include "kernels/peak.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/peak.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace nmrf::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

int64_t Target() { return HWY_TARGET; }

// FLOPs done; the result goes to `sink` so that nothing is optimised away.
double Burn(int64_t rounds, float* sink) {
  const hn::ScalableTag<float> f;
  using V = hn::Vec<decltype(f)>;
  constexpr int kChains = 12;  // latency 4..5, two a cycle
  V sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = hn::Set(f, static_cast<float>(i));
  const V a = hn::Set(f, 0.999f + *sink * 0.0f), b = hn::Set(f, 0.001f);
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sums[i] = hn::MulAdd(sums[i], a, b);
  }
  V total = sums[0];
  for (int i = 1; i < kChains; ++i) total = hn::Add(total, sums[i]);
  *sink = hn::GetLane(hn::SumOfLanes(f, total));
  return 2.0 * static_cast<double>(rounds) * kChains * HWY_LANES(float);
}

}  // namespace nmrf::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nmrf::kernels {

HWY_EXPORT(Target);
HWY_EXPORT(Burn);

std::string simd_target() { return hwy::TargetName(HWY_DYNAMIC_DISPATCH(Target)()); }

void limit_simd(const std::string& widest) {
#if HWY_ARCH_X86
  const std::int64_t target = widest == "sse4"     ? HWY_SSE4
                              : widest == "avx2"   ? HWY_AVX2
                              : widest == "avx512" ? HWY_AVX3
                                                   : HWY_AVX3_DL;
  hwy::DisableTargets(target - 1);  // wider ones are lower bits
#else
  (void)widest;
#endif
}

double fma_peak(double seconds) {
  using Clock = std::chrono::steady_clock;
  auto since = [](Clock::time_point t) {
    return std::chrono::duration<double>(Clock::now() - t).count();
  };
  const auto start = Clock::now();
  float sink = 0;
  double best = 0;
  do {
    const auto t = Clock::now();
    const double flops = HWY_DYNAMIC_DISPATCH(Burn)(200'000, &sink);
    best = std::max(best, flops / since(t) * 1e-9);
  } while (since(start) < seconds);
  return best;
}

}  // namespace nmrf::kernels
#endif
