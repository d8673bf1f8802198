// What this machine can do at best, for benchmarks to be measured against.
#pragma once

#include <string>

namespace nmrf::kernels {

// The SIMD target the kernels run on: "AVX3", "AVX2", ...
std::string simd_target();

// GFLOP/s of one thread doing nothing but independent fused multiply-adds in registers: the best of
// repeated short runs within about `seconds`.
double fma_peak(double seconds);

}  // namespace nmrf::kernels
