// A quantile of a list of numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace nmrf {

// The value below which `share` (0 to 1) of the others lie, itself one of them; 0 of none.
// Changes the order of the values; none may be NaN.
template <class T>
T quantile(std::vector<T>& values, double share) {
  if (values.empty()) return 0;
  const auto last = static_cast<double>(values.size() - 1);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(std::llround(share * last));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace nmrf
