#include "core/numbers.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace nmrf {
namespace {

TEST(Numbers, BitCast) {
  EXPECT_EQ(bit_cast<std::uint32_t>(1.0f), 0x3f800000u);
  EXPECT_EQ(bit_cast<double>(std::uint64_t{0x4000000000000000}), 2.0);
}

TEST(Numbers, WholeTextsOnly) {
  EXPECT_EQ(parse_double("-1.5e3"), -1500.0);
  EXPECT_EQ(parse_double("0.1"), 0.1);
  for (const char* text : {"", " 1", "1 ", "+1", "0x10", "1,5", "one"})
    EXPECT_FALSE(parse_double(text)) << text;
}

}  // namespace
}  // namespace nmrf
