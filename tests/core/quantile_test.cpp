#include "core/quantile.h"

#include <gtest/gtest.h>

namespace nmrf {
namespace {

TEST(Quantile, TakesOneOfTheValues) {
  std::vector<double> values{5, 1, 4, 2, 3};
  EXPECT_EQ(quantile(values, 0), 1);
  EXPECT_EQ(quantile(values, 0.5), 3);
  EXPECT_EQ(quantile(values, 0.98), 5);
  EXPECT_EQ(quantile(values, 1), 5);
  std::vector<float> one{7}, none;
  EXPECT_EQ(quantile(one, 0.3), 7);
  EXPECT_EQ(quantile(none, 0.5), 0);
}

}  // namespace
}  // namespace nmrf
