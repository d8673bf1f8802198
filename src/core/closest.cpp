#include "core/closest.h"

#include <algorithm>
#include <numeric>

namespace nmrf {
namespace {

// Levenshtein distance.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string closest(const std::string& word, const std::vector<std::string>& known) {
  const auto found = std::min_element(
      known.begin(), known.end(),
      [&](const auto& a, const auto& b) { return distance(a, word) < distance(b, word); });
  return found == known.end() ? "" : *found;
}

}  // namespace nmrf
