// What `--rectify auto` decides by the check of a pair.
#pragma once

#include "nmrf/checks.h"

namespace nmrf::cli {

inline constexpr double kMostNegative = 0.1;  // share of the matches

// Whether the pair is to be rectified by features: it is not rectified, nobody can tell, or its
// cameras look past each other, so that disparities are negative.
inline bool wants_features(const PairCheck& check) {
  return !check.conclusive || check.not_rectified ||
         (!check.swapped && check.negative_share > kMostNegative);
}
// Whether a small correction will do where that is refused. It leaves negative disparities.
inline bool small_correction_does(const PairCheck& check) {
  return check.correctable && check.negative_share <= kMostNegative;
}

}  // namespace nmrf::cli
