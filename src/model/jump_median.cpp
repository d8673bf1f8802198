#include "model/jump_median.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <opencv2/imgproc.hpp>
#include <vector>

#include "core/check.h"
#include "ops/parallel.h"

namespace nmrf {
namespace {

constexpr float kJump = 1;      // px
constexpr int kReach = 2;       // px, how far from a jump pixels are looked at again
constexpr double kColour = 10;  // grey levels a channel at which the weight falls to 1/e
constexpr int kWholeWeight = 1 << 12;

struct Voter {
  float value;
  std::uint32_t weight;
};

// By the sum of the differences of three channels. Integers, so that sums do not depend on the
// order they are taken in.
const std::array<std::uint32_t, 3 * 255 + 1>& weights() {
  static const auto table = [] {
    std::array<std::uint32_t, 3 * 255 + 1> made{};
    for (std::size_t i = 0; i < made.size(); ++i)
      made[i] = static_cast<std::uint32_t>(
          std::lround(kWholeWeight * std::exp(-static_cast<double>(i) / (3 * kColour))));
    return made;
  }();
  return table;
}

// Quickselect by weight; the pixel itself weighs something, so there is a voter.
float weighted_median(std::vector<Voter>& voters, std::uint64_t total) {
  auto begin = voters.begin(), end = voters.end();
  std::uint64_t before = 0;
  while (end - begin > 1) {
    const float a = begin->value, b = begin[(end - begin) / 2].value, c = end[-1].value;
    const float pivot = std::max(std::min(a, b), std::min(std::max(a, b), c));
    std::uint64_t less = 0, equal = 0;
    auto low = begin, middle = begin, high = end;
    while (middle < high) {
      if (middle->value < pivot) {
        less += middle->weight;
        std::swap(*low++, *middle++);
      } else if (middle->value > pivot) {
        std::swap(*middle, *--high);
      } else {
        equal += (middle++)->weight;
      }
    }
    if (2 * (before + less) >= total && low > begin) {
      end = low;
    } else if (2 * (before + less + equal) >= total) {
      return pivot;
    } else {
      before += less + equal;
      begin = high;
    }
  }
  return begin->value;
}

}  // namespace

cv::Mat median_at_jumps(const cv::Mat& map, const cv::Mat& image, int radius) {
  check(map.type() == CV_32FC1 && image.type() == CV_8UC3 && map.size() == image.size(),
        ErrorKind::kUsage, "the median at jumps needs a disparity map and its image, of one size");
  check(radius >= 0 && radius <= kMostMedianRadius, ErrorKind::kUsage,
        "the radius of the median at jumps is {}; expected 0 to {}", radius, kMostMedianRadius);
  cv::Mat result = map.clone();
  if (radius == 0 || map.empty()) return result;
  cv::Mat low, high;
  const cv::Mat near = cv::Mat::ones(2 * kReach + 1, 2 * kReach + 1, CV_8UC1);
  cv::erode(map, low, near);
  cv::dilate(map, high, near);
  ops::share(map.rows, 4, [&](std::int64_t first, std::int64_t last) {
    std::vector<Voter> voters;
    for (int y = static_cast<int>(first); y < static_cast<int>(last); ++y)
      for (int x = 0; x < map.cols; ++x) {
        if (!(high.at<float>(y, x) - low.at<float>(y, x) > kJump)) continue;
        if (!std::isfinite(map.at<float>(y, x))) continue;
        const cv::Vec3b own = image.at<cv::Vec3b>(y, x);
        const int left = std::max(0, x - radius), right = std::min(map.cols - 1, x + radius);
        const int bottom = std::min(map.rows - 1, y + radius);
        voters.clear();
        std::uint64_t total = 0;
        for (int v = std::max(0, y - radius); v <= bottom; ++v) {
          const float* values = map.ptr<float>(v);
          const auto* colours = image.ptr<cv::Vec3b>(v);
          for (int u = left; u <= right; ++u) {
            const cv::Vec3b& colour = colours[u];
            const std::uint32_t weight = weights()[static_cast<std::size_t>(
                std::abs(own[0] - colour[0]) + std::abs(own[1] - colour[1]) +
                std::abs(own[2] - colour[2]))];
            if (weight == 0 || !std::isfinite(values[u])) continue;
            voters.push_back({values[u], weight});
            total += weight;
          }
        }
        result.at<float>(y, x) = weighted_median(voters, total);
      }
  });
  return result;
}

}  // namespace nmrf
