// Small maps and comparisons for the tests of files.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>

#include "nmrf/image.h"
#include "nmrf/map.h"

namespace nmrf::test {

// A map of uneven values, with invalid pixels (+infinity) here and there.
inline FloatMap sample_map(int rows, int cols, bool with_invalid = true) {
  FloatMap map(cols, rows);
  for (int y = 0; y < rows; ++y)
    for (int x = 0; x < cols; ++x)
      map.at(y, x) = with_invalid && (x * 7 + y * 3) % 11 == 5
                         ? std::numeric_limits<float>::infinity()
                         : 0.37f + 1.61f * static_cast<float>(x) + 0.013f * static_cast<float>(y);
  return map;
}

// A map of one row.
inline FloatMap row_map(std::initializer_list<float> values) {
  FloatMap map(static_cast<int>(values.size()), 1);
  std::copy(values.begin(), values.end(), map.begin());
  return map;
}

// Equal in size and every bit.
inline void expect_same_bits(const FloatMap& a, const FloatMap& b) {
  ASSERT_EQ(std::pair(a.width(), a.height()), std::pair(b.width(), b.height()));
  for (int y = 0; y < a.height(); ++y)
    ASSERT_EQ(0,
              std::memcmp(a.row(y), b.row(y), sizeof(float) * static_cast<std::size_t>(a.width())))
        << "row " << y;
}

// Equal in size, channels, depth, order and every bit.
inline void expect_same_bits(const Image& a, const Image& b) {
  ASSERT_EQ(std::pair(a.width(), a.height()), std::pair(b.width(), b.height()));
  ASSERT_EQ(a.channels(), b.channels());
  ASSERT_EQ(a.bits(), b.bits());
  ASSERT_EQ(a.order(), b.order());
  for (int y = 0; y < a.height(); ++y)
    ASSERT_EQ(0, std::memcmp(a.row(y), b.row(y), a.row_bytes())) << "row " << y;
}

// Writes a file without waiting for the disk: some tests write thousands.
inline void put(const std::filesystem::path& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << content;
  file.close();
  ASSERT_TRUE(file.good()) << path;
}

// The four bytes of a float, lowest first or highest first.
inline std::string float_bytes(float value, bool big_endian = false) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, 4);
  std::string bytes(4, '\0');
  for (int i = 0; i < 4; ++i)
    bytes[static_cast<std::size_t>(i)] = static_cast<char>(bits >> (8 * (big_endian ? 3 - i : i)));
  return bytes;
}

}  // namespace nmrf::test
