// The SIMD targets the kernels are compiled for; included before <hwy/highway.h> by every kernel.
#pragma once

// AVX-512, AVX2, NEON, and SSE4 as the least an x86 must have (every one since 2011): the fallback
// of Highway is one lane wide with GCC 12.2. Vectors of unknown length (SVE, RVV) cannot be held in
// the arrays that register tiles need.
#if !defined(HWY_BASELINE_TARGETS) && (defined(__x86_64__) || defined(_M_X64))
#define HWY_BASELINE_TARGETS HWY_SSE4
#endif
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif
