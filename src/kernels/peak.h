// What this machine can do at best, for benchmarks to be measured against.
#pragma once

#include <string>

namespace nmrf::kernels {

// The SIMD target the kernels run on: "AVX3", "AVX2", ...
std::string simd_target();
// From now on the kernels of this process use no wider instruction set than "sse4", "avx2",
// "avx512" or "vnni". For benchmarks: weights packed before do not fit any more.
void limit_simd(const std::string& widest);

// GFLOP/s of one thread doing nothing but independent fused multiply-adds in registers: the best of
// repeated short runs within about `seconds`.
double fma_peak(double seconds);

}  // namespace nmrf::kernels
