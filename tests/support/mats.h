// Comparing images and maps.
#pragma once

#include <cstring>
#include <opencv2/core.hpp>

namespace nmrf::test {

// Of one size and type, and equal bit by bit.
inline bool same(const cv::Mat& a, const cv::Mat& b) {
  if (a.size() != b.size() || a.type() != b.type()) return false;
  const std::size_t row = static_cast<std::size_t>(a.cols) * a.elemSize();
  for (int y = 0; y < a.rows; ++y)
    if (std::memcmp(a.ptr(y), b.ptr(y), row) != 0) return false;
  return true;
}

}  // namespace nmrf::test
