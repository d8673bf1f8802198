// Work shared by the threads piece by piece.
#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace nmrf::ops {

// f(begin, end) for pieces of `units`, each of at least `least` of them: more pieces than threads,
// and each thread takes the next one as soon as it is free, so that one which is held up (by other
// programs, by a slower core) does not hold up the rest. For work whose result does not depend on
// where the pieces begin.
template <class F>
void share(int64_t units, int64_t least, const F& f) {
  constexpr int64_t kPiecesOfThread = 24;
  if (units <= 0) return;
  const int64_t threads = at::in_parallel_region() ? 1 : at::get_num_threads();
  const int64_t pieces =
      threads == 1 ? 1 : std::clamp<int64_t>(units / least, 1, threads * kPiecesOfThread);
  if (pieces == 1) return f(int64_t{0}, units);
  std::atomic<int64_t> next{0};
  at::parallel_for(0, std::min(threads, pieces), 1, [&](int64_t, int64_t) {
    for (int64_t i = next++; i < pieces; i = next++)
      f(units * i / pieces, units * (i + 1) / pieces);
  });
}

}  // namespace nmrf::ops
