#include "core/select.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace nmrf {
namespace {

using Entry = std::pair<int, int>;  // value, index
bool greater(const Entry& a, const Entry& b) { return a.first > b.first; }

std::vector<Entry> entries(std::mt19937& random, int size, int values) {
  std::vector<Entry> result;
  for (int i = 0; i < size; ++i) result.emplace_back(static_cast<int>(random() % values), i);
  return result;
}

TEST(Select, BestFirst) {
  std::mt19937 random(5);
  for (int round = 0; round < 500; ++round) {
    const int size = 1 + round % 61, count = 1 + static_cast<int>(random() % size);
    auto list = entries(random, size, 1 + round % 50), sorted = list;
    select_first(list.data(), list.size(), static_cast<std::size_t>(count), greater);
    std::stable_sort(sorted.begin(), sorted.end(), greater);
    for (int i = 0; i < count; ++i) EXPECT_EQ(list[i].first, sorted[i].first);
    std::sort(list.begin(), list.end());
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(list, sorted);  // nothing is lost
  }
}

#if defined(__GLIBCXX__)
// Up to here std::sort of libstdc++ keeps the order of equal entries.
constexpr int kFew = 16;

TEST(Select, TiesAsTheStandardLibraryOfTheReferenceBreaksThem) {
  std::mt19937 random(6);
  for (int round = 0; round < 3000; ++round) {
    const int size = 1 + round % 97;
    const int count = 1 + static_cast<int>(random() % std::min(size, kFew));
    auto list = entries(random, size, 1 + round % 9), expected = list;
    select_first(list.data(), list.size(), static_cast<std::size_t>(count), greater);
    std::nth_element(expected.begin(), expected.begin() + count - 1, expected.end(), greater);
    std::sort(expected.begin(), expected.begin() + count - 1, greater);
    for (int i = 0; i < count; ++i)
      EXPECT_EQ(list[i], expected[i]) << size << ' ' << count << ' ' << i;
  }
}
#endif

}  // namespace
}  // namespace nmrf
