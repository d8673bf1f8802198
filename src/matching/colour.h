// How far two colours are apart.
#pragma once

#include <cstdlib>
#include <opencv2/core.hpp>

namespace nmrf {

// The differences of the three channels, added: 0 to 765.
inline int colour_difference(const cv::Vec3b& a, const cv::Vec3b& b) {
  return std::abs(a[0] - b[0]) + std::abs(a[1] - b[1]) + std::abs(a[2] - b[2]);
}

}  // namespace nmrf
