#include "matching/image_features.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/rng.h"
#include "kernels/features.h"

namespace nmrf {
namespace {

constexpr int kLevels = 4;  // coarser ones place a feature to several pixels only
constexpr double kLevelStep = 1.2;
constexpr int kThreshold = 20, kLowThreshold = 7;  // grey levels; the second where little is found
constexpr int kPatch = 15;  // px, radius of what orientation and descriptor look at
constexpr int kBlur = 3;    // px, radius
constexpr int kBorder = kPatch + kBlur + 1;
constexpr int kBits = 256;

struct Corner {
  int x, y;
  int fast;
  float harris = 0;
};

// Bilinear.
Grey resized(const Grey& image, int width, int height) {
  Grey result{width, height, {}};
  result.values.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
  struct Tap {
    int first, second, weight;  // of the second, of 256
  };
  auto tap = [](int i, int source, int target) {
    const double at = std::clamp((i + 0.5) * source / target - 0.5, 0.0, source - 1.0);
    const int first = static_cast<int>(at);
    return Tap{first, std::min(first + 1, source - 1), static_cast<int>((at - first) * 256 + 0.5)};
  };
  std::vector<Tap> columns;
  for (int x = 0; x < width; ++x) columns.push_back(tap(x, image.width, width));
  std::vector<int> mixed(static_cast<std::size_t>(image.width));
  for (int y = 0; y < height; ++y) {
    const Tap rows = tap(y, image.height, height);
    const std::uint8_t *above = image.row(rows.first), *below = image.row(rows.second);
    for (int x = 0; x < image.width; ++x)
      mixed[static_cast<std::size_t>(x)] = above[x] * (256 - rows.weight) + below[x] * rows.weight;
    std::uint8_t* to = result.values.data() + static_cast<std::ptrdiff_t>(y) * width;
    for (const Tap& t : columns)
      *to++ = static_cast<std::uint8_t>(
          (mixed[static_cast<std::size_t>(t.first)] * (256 - t.weight) +
           mixed[static_cast<std::size_t>(t.second)] * t.weight + (1 << 15)) >>
          16);
  }
  return result;
}

// Gaussian of sigma 2; what is closer than kBlur to the edge is left out.
Grey blurred(const Grey& image) {
  constexpr std::array<std::uint16_t, 2 * kBlur + 1> kWeights{18, 34, 48, 56, 48, 34, 18};
  Grey result{image.width, image.height, std::vector<std::uint8_t>(image.values.size())};
  std::vector<std::uint8_t> down(static_cast<std::size_t>(image.width));
  for (int y = kBlur; y < image.height - kBlur; ++y) {
    const std::uint8_t* rows[2 * kBlur + 1];
    for (int i = 0; i <= 2 * kBlur; ++i) rows[i] = image.row(y - kBlur + i);
    auto sum = [&](auto value) {
      std::uint16_t total = 128;
      for (int i = 0; i <= 2 * kBlur; ++i)
        total =
            static_cast<std::uint16_t>(total + kWeights[static_cast<std::size_t>(i)] * value(i));
      return static_cast<std::uint8_t>(total >> 8);
    };
    std::uint8_t* between = down.data();
    for (int x = 0; x < image.width; ++x) between[x] = sum([&](int i) { return rows[i][x]; });
    std::uint8_t* to = result.values.data() + static_cast<std::ptrdiff_t>(y) * image.width;
    for (int x = kBlur; x < image.width - kBlur; ++x)
      to[x] = sum([&](int i) { return between[x - kBlur + i]; });
  }
  return result;
}

// Corners that are stronger than their eight neighbours.
std::vector<Corner> strongest_corners(const Grey& image, int threshold) {
  const int width = image.width, end = width - kBorder, bottom = image.height - kBorder;
  // Scores of three rows; 0 where there is no corner.
  std::array<std::vector<int>, 3> scores;
  std::array<std::vector<std::int32_t>, 3> columns;
  for (auto& row : scores) row.assign(static_cast<std::size_t>(width), 0);
  for (auto& row : columns) row.resize(static_cast<std::size_t>(width) + 64);
  std::array<int, 3> counts{};
  std::vector<Corner> corners;
  for (int y = kBorder; y <= bottom; ++y) {
    const auto now = static_cast<std::size_t>(y % 3),
               before = static_cast<std::size_t>((y + 2) % 3),
               first = static_cast<std::size_t>((y + 1) % 3);
    for (int i = 0; i < counts[now]; ++i)
      scores[now][static_cast<std::size_t>(columns[now][static_cast<std::size_t>(i)])] = 0;
    counts[now] = y == bottom ? 0
                              : kernels::fast_corners(image.row(y), width, kBorder, end, threshold,
                                                      columns[now].data());
    for (int i = 0; i < counts[now]; ++i) {
      const int x = columns[now][static_cast<std::size_t>(i)];
      scores[now][static_cast<std::size_t>(x)] = kernels::fast_score(image.row(y) + x, width);
    }
    for (int i = 0; i < counts[before]; ++i) {
      const int x = columns[before][static_cast<std::size_t>(i)];
      const int *above = scores[first].data() + x, *row = scores[before].data() + x,
                *below = scores[now].data() + x;
      const int around =
          std::max({above[-1], above[0], above[1], row[-1], row[1], below[-1], below[0], below[1]});
      if (row[0] > around) corners.push_back({x, y - 1, row[0]});
    }
  }
  return corners;
}

float harris(const Grey& image, const Corner& corner) {
  constexpr int kRadius = 3;
  constexpr float kTrace = 0.04f;
  const std::ptrdiff_t stride = image.width;
  int xx = 0, yy = 0, xy = 0;
  for (int y = -kRadius; y <= kRadius; ++y) {
    const std::uint8_t* p = image.row(corner.y + y) + corner.x - kRadius;
    for (int x = 0; x <= 2 * kRadius; ++x, ++p) {
      const int dx =
          2 * (p[1] - p[-1]) + (p[1 - stride] - p[-1 - stride]) + (p[1 + stride] - p[-1 + stride]);
      const int dy = 2 * (p[stride] - p[-stride]) + (p[stride - 1] - p[-stride - 1]) +
                     (p[stride + 1] - p[-stride + 1]);
      xx += dx * dx;
      yy += dy * dy;
      xy += dx * dy;
    }
  }
  const auto a = static_cast<float>(xx), b = static_cast<float>(yy), c = static_cast<float>(xy);
  return a * b - c * c - kTrace * (a + b) * (a + b);
}

// The best `count` by `score`; equal ones in the order they came.
template <class Score>
void keep_best(std::vector<Corner>& corners, std::size_t count, const Score& score) {
  if (corners.size() <= count) return;
  std::stable_sort(corners.begin(), corners.end(),
                   [&](const Corner& a, const Corner& b) { return score(a) > score(b); });
  corners.resize(count);
}

// Where the brightness of the patch around a corner lies, as a unit vector.
struct Direction {
  float x, y;
};
Direction direction(const Grey& image, const Corner& corner) {
  static const std::array<int, kPatch + 1> kHalfWidths = [] {
    std::array<int, kPatch + 1> made{};
    for (int y = 0; y <= kPatch; ++y)
      made[static_cast<std::size_t>(y)] =
          static_cast<int>(std::sqrt(static_cast<double>(kPatch * kPatch - y * y)));
    return made;
  }();
  int sum_x = 0, sum_y = 0;
  for (int y = -kPatch; y <= kPatch; ++y) {
    const int half = kHalfWidths[static_cast<std::size_t>(std::abs(y))];
    const std::uint8_t* row = image.row(corner.y + y) + corner.x;
    int total = 0;
    for (int x = -half; x <= half; ++x) {
      total += row[x];
      sum_x += x * row[x];
    }
    sum_y += y * total;
  }
  const float length = std::hypot(static_cast<float>(sum_x), static_cast<float>(sum_y));
  if (length == 0) return {1, 0};
  return {static_cast<float>(sum_x) / length, static_cast<float>(sum_y) / length};
}

// Pairs of points whose brightness is compared: normally distributed, within the patch. By
// coordinate, so that turning them is one loop.
struct Pattern {
  std::array<float, 2 * kBits> x, y;
};
const Pattern& pattern() {
  static const Pattern made = [] {
    constexpr double kSpread = 8;
    Pattern points{};
    Rng rng(17);
    auto normal = [&] {
      double sum = -6;
      for (int i = 0; i < 12; ++i) sum += rng.uniform();
      return kSpread * sum;
    };
    for (std::size_t i = 0; i < points.x.size();) {
      const double x = normal(), y = normal();
      if (x * x + y * y > (kPatch - 0.5) * (kPatch - 0.5)) continue;
      points.x[i] = static_cast<float>(x);
      points.y[i++] = static_cast<float>(y);
    }
    return points;
  }();
  return made;
}

void describe(const Grey& blurred, const Corner& corner, Direction turn,
              std::array<std::uint64_t, kBits / 64>& words) {
  const Pattern& points = pattern();
  const std::uint8_t* middle = blurred.row(corner.y) + corner.x;
  std::array<std::int32_t, 2 * kBits> offsets;
  auto nearest = [](float v) { return static_cast<int>(v + 32.5f) - 32; };
  for (std::size_t i = 0; i < offsets.size(); ++i)
    offsets[i] = nearest(turn.y * points.x[i] + turn.x * points.y[i]) * blurred.width +
                 nearest(turn.x * points.x[i] - turn.y * points.y[i]);
  words = {};
  for (std::size_t i = 0; i < kBits; ++i)
    words[i / 64] |= static_cast<std::uint64_t>(middle[offsets[2 * i]] < middle[offsets[2 * i + 1]])
                     << (i % 64);
}

}  // namespace

Grey to_grey(const Image& image) {
  Grey result{image.width(), image.height(), {}};
  result.values.resize(static_cast<std::size_t>(image.width()) *
                       static_cast<std::size_t>(image.height()));
  const std::uint8_t* rgb = image.data();
  for (std::size_t i = 0; i < result.values.size(); ++i, rgb += 3)
    result.values[i] =
        static_cast<std::uint8_t>((rgb[0] * 4899 + rgb[1] * 9617 + rgb[2] * 1868 + 8192) >> 14);
  return result;
}

Features find_features(const Grey& image, int count) {
  Features result;
  std::vector<std::array<std::uint64_t, kBits / 64>> all;
  double shares = 0;
  for (int level = 0; level < kLevels; ++level) shares += std::pow(kLevelStep, -level);
  for (int level = 0; level < kLevels; ++level) {
    const double factor = std::pow(kLevelStep, -level);
    const int width = static_cast<int>(std::lround(image.width * factor));
    const int height = static_cast<int>(std::lround(image.height * factor));
    if (std::min(width, height) <= 2 * kBorder) break;
    const Grey smaller = level ? resized(image, width, height) : Grey{};
    const Grey& source = level ? smaller : image;
    const auto wanted = static_cast<std::size_t>(std::lround(count * factor / shares));
    auto corners = strongest_corners(source, kThreshold);
    if (corners.size() < wanted) corners = strongest_corners(source, kLowThreshold);
    keep_best(corners, 2 * wanted, [](const Corner& corner) { return corner.fast; });
    for (Corner& corner : corners) corner.harris = harris(source, corner);
    keep_best(corners, wanted, [](const Corner& corner) { return corner.harris; });
    const Grey smooth = blurred(source);
    for (const Corner& corner : corners) {
      result.places.push_back(
          {(static_cast<float>(corner.x) + 0.5f) * static_cast<float>(image.width) /
                   static_cast<float>(width) -
               0.5f,
           (static_cast<float>(corner.y) + 0.5f) * static_cast<float>(image.height) /
                   static_cast<float>(height) -
               0.5f});
      describe(smooth, corner, direction(source, corner), all.emplace_back());
    }
  }
  result.step = (all.size() + 7) / 8 * 8;
  result.words.assign(result.step * (kBits / 64), 0);
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t k = 0; k < kBits / 64; ++k) result.words[k * result.step + i] = all[i][k];
  return result;
}

std::vector<FeatureMatch> match_features(const Features& left, const Features& right, int most) {
  std::vector<FeatureMatch> matches;
  if (left.places.empty() || right.places.empty()) return matches;
  std::vector<std::int64_t> left_nearest(left.step), right_nearest(right.step);
  kernels::nearest_descriptors({left.words.data(), left.step, left.places.size()},
                               {right.words.data(), right.step, right.places.size()}, left_nearest,
                               right_nearest);
  for (std::size_t i = 0; i < left.places.size(); ++i) {
    const auto j = static_cast<std::size_t>(left_nearest[i] & 0xffffffff);
    const auto distance = static_cast<int>(left_nearest[i] >> 32);
    if (distance <= most && static_cast<std::size_t>(right_nearest[j] & 0xffffffff) == i)
      matches.push_back({i, j, distance});
  }
  return matches;
}

}  // namespace nmrf
