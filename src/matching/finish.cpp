#include "matching/finish.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <opencv2/imgproc.hpp>
#include <vector>

#include "core/check.h"
#include "matching/colour.h"
#include "matching/right_row.h"
#include "train/ops/parallel.h"

namespace nmrf {
namespace {

constexpr float kSeen = RightRow::kSeen;
constexpr int kReach = 2;       // px, how far from a jump pixels are looked at again
constexpr double kColour = 10;  // grey levels a channel at which the weight falls to 1/e
constexpr int kWholeWeight = 1 << 12;

// By the sum of the differences of three channels. Integers, so that sums do not depend on the
// order they are taken in.
using Weights = std::array<std::uint32_t, 3 * 255 + 1>;
const Weights& weights() {
  static const Weights table = [] {
    Weights made{};
    for (std::size_t i = 0; i < made.size(); ++i)
      made[i] = static_cast<std::uint32_t>(std::max(
          1L, std::lround(kWholeWeight * std::exp(-static_cast<double>(i) / (3 * kColour)))));
    return made;
  }();
  return table;
}

// The pixels of one window that count, and their weighted median.
class Voters {
 public:
  explicit Voters(const cv::Mat& image) : image_(image), weights_(weights()) {}

  void start(int y, int x) {
    own_ = image_.at<cv::Vec3b>(y, x);
    count_ = 0;
    total_ = 0;
  }

  // Columns left to right of row y, with their values; `counts` says which of them vote.
  template <class Counts>
  void add(int y, int left, int right, const float* values, const Counts& counts) {
    const auto* colours = image_.ptr<cv::Vec3b>(y);
    for (int x = left; x <= right; ++x) {
      if (!std::isfinite(values[x]) || !counts(x)) continue;
      const std::uint32_t weight =
          weights_[static_cast<std::size_t>(colour_difference(own_, colours[x]))];
      voters_[count_++] = {values[x], weight};
      total_ += weight;
    }
  }

  // Quickselect by weight; `otherwise` without voters.
  float median(float otherwise) {
    auto *begin = voters_.data(), *end = begin + count_;
    if (begin == end) return otherwise;
    std::uint64_t before = 0;
    while (end - begin > 1) {
      const float a = begin->value, b = begin[(end - begin) / 2].value, c = end[-1].value;
      const float pivot = std::max(std::min(a, b), std::min(std::max(a, b), c));
      std::uint64_t less = 0, equal = 0;
      auto *low = begin, *middle = begin, *high = end;
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
      if (low > begin && 2 * (before + less) >= total_) {
        end = low;
      } else if (2 * (before + less + equal) >= total_) {
        return pivot;
      } else {
        before += less + equal;
        begin = high;
      }
    }
    return begin->value;
  }

 private:
  struct Voter {
    float value;
    std::uint32_t weight;
  };
  static constexpr std::size_t kMost = (2 * kMostFinishRadius + 1) * (2 * kMostFinishRadius + 1);
  const cv::Mat& image_;
  const Weights& weights_;
  cv::Vec3b own_;
  std::array<Voter, kMost> voters_;
  std::size_t count_ = 0;
  std::uint64_t total_ = 0;
};

void check_input(const cv::Mat& map, const cv::Mat& image, int radius) {
  check(map.type() == CV_32FC1 && image.type() == CV_8UC3 && map.size() == image.size(),
        ErrorKind::kUsage, "finishing a disparity map needs its image, of the same size");
  check(radius >= 0 && radius <= kMostFinishRadius, ErrorKind::kUsage,
        "the radius of a median is {}; expected 0 to {}", radius, kMostFinishRadius);
}

}  // namespace

cv::Mat fill_unseen(const cv::Mat& map, const cv::Mat& image, int radius) {
  check_input(map, image, radius);
  cv::Mat result = map.clone();
  if (radius == 0 || map.empty()) return result;
  const int height = map.rows, width = map.cols;
  std::vector<RightRow> rows(static_cast<std::size_t>(height));
  cv::Mat hides(map.size(), CV_32FC1);
  auto right = [&](int y) -> RightRow& { return rows[static_cast<std::size_t>(y)]; };
  auto look = [&] {
    for (int y = 0; y < height; ++y) {
      const float* row = result.ptr<float>(y);
      right(y).look(row, width);
      for (int x = 0; x < width; ++x) hides.at<float>(y, x) = right(y).hides(x, row[x]);
    }
  };
  Voters voters(image);

  look();
  int first = 0;
  for (const auto& row : rows) first = std::max(first, row.inside());
  for (int x = first - 1; x >= 0; --x)
    for (int y = 0; y < height; ++y) {
      float& own = result.at<float>(y, x);
      if (x >= right(y).inside() || !std::isfinite(own)) continue;
      if (static_cast<float>(x) >= own && hides.at<float>(y, x) == kSeen) continue;
      voters.start(y, x);
      for (int v = std::max(0, y - radius); v <= std::min(height - 1, y + radius); ++v) {
        const float* values = result.ptr<float>(v);
        voters.add(v, x + 1, std::min(width - 1, x + radius), values,
                   [&](int u) { return right(y).unseen(x, values[u]); });
      }
      own = voters.median(own);
    }

  look();
  for (int x = 0; x < width; ++x)
    for (int y = 0; y < height; ++y) {
      const float limit = hides.at<float>(y, x) - kJump;
      if (limit == kSeen) continue;
      voters.start(y, x);
      for (int v = std::max(0, y - radius); v <= std::min(height - 1, y + radius); ++v) {
        const float *values = result.ptr<float>(v), *hidden = hides.ptr<float>(v);
        // To the left the hidden ones are filled already.
        voters.add(v, std::max(0, x - radius), std::min(width - 1, x + radius), values, [&](int u) {
          return values[u] <= limit && (u < x || hidden[u] == kSeen) &&
                 right(y).unseen(x, values[u]);
        });
      }
      result.at<float>(y, x) = voters.median(result.at<float>(y, x));
    }
  return result;
}

cv::Mat median_at_jumps(const cv::Mat& map, const cv::Mat& image, int radius) {
  check_input(map, image, radius);
  cv::Mat result = map.clone();
  if (radius == 0 || map.empty()) return result;
  const int height = map.rows, width = map.cols;
  cv::Mat jumps = cv::Mat::zeros(map.size(), CV_8UC1);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const float own = map.at<float>(y, x);
      auto compare = [&](int v, int u) {
        if (std::abs(map.at<float>(v, u) - own) > kJump)
          jumps.at<uchar>(y, x) = jumps.at<uchar>(v, u) = 1;
      };
      if (x + 1 < width) compare(y, x + 1);
      if (y + 1 < height) compare(y + 1, x);
    }
  cv::dilate(jumps, jumps, cv::Mat::ones(2 * kReach + 1, 2 * kReach + 1, CV_8UC1));
  ops::share(height, 4, [&](std::int64_t first, std::int64_t last) {
    Voters voters(image);
    for (int y = static_cast<int>(first); y < static_cast<int>(last); ++y)
      for (int x = 0; x < width; ++x) {
        if (jumps.at<uchar>(y, x) == 0 || !std::isfinite(map.at<float>(y, x))) continue;
        voters.start(y, x);
        for (int v = std::max(0, y - radius); v <= std::min(height - 1, y + radius); ++v)
          voters.add(v, std::max(0, x - radius), std::min(width - 1, x + radius), map.ptr<float>(v),
                     [](int) { return true; });
        result.at<float>(y, x) = voters.median(map.at<float>(y, x));
      }
  });
  return result;
}

}  // namespace nmrf
