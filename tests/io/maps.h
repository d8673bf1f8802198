// Small maps and comparisons for the tests of files.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <opencv2/core.hpp>
#include <string>

namespace nmrf::test {

// A map of uneven values, with invalid pixels (+infinity) here and there.
inline cv::Mat sample_map(int rows, int cols, bool with_invalid = true) {
  cv::Mat map(rows, cols, CV_32FC1);
  for (int y = 0; y < rows; ++y)
    for (int x = 0; x < cols; ++x)
      map.at<float>(y, x) =
          with_invalid && (x * 7 + y * 3) % 11 == 5
              ? std::numeric_limits<float>::infinity()
              : 0.37f + 1.61f * static_cast<float>(x) + 0.013f * static_cast<float>(y);
  return map;
}

// Equal in size, type and every bit.
inline void expect_same_bits(const cv::Mat& a, const cv::Mat& b) {
  ASSERT_EQ(a.size(), b.size());
  ASSERT_EQ(a.type(), b.type());
  for (int y = 0; y < a.rows; ++y)
    ASSERT_EQ(0, std::memcmp(a.ptr(y), b.ptr(y), a.elemSize() * static_cast<std::size_t>(a.cols)))
        << "row " << y;
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
