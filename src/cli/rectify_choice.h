// What `--rectify auto` decides by the check of a pair.
#pragma once

#include "nmrf/checks.h"

namespace nmrf::cli {

// Whether the pair is to be rectified by features: it is not rectified, nobody can tell, or its
// cameras look past each other, so that disparities are negative. Where that is refused, a small
// correction may still do (PairCheck::correctable).
inline bool wants_features(const PairCheck& check) {
  constexpr double kMostNegative = 0.1;  // share of the matches
  return !check.conclusive || check.not_rectified ||
         (!check.swapped && check.negative_share > kMostNegative);
}

}  // namespace nmrf::cli
