// Comparing and turning images and maps.
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

// As seen in a mirror: left and right change places.
inline cv::Mat mirrored(const cv::Mat& image) {
  cv::Mat out;
  cv::flip(image, out, 1);
  return out;
}

}  // namespace nmrf::test
