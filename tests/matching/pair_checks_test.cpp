// Swapped, unrectified and identical pairs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/features.h"
#include "matching/image_features.h"
#include "matching/pair_warps.h"
#include "matching/pictures.h"
#include "nmrf/checks.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::moved;
using test::slanted_plane;
using test::turned;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(PairCheck, GoodPairIsSilent) {
  const auto [left, right] = slanted_plane(640, 400, 30);
  const PairCheck check = check_pair(left, right);
  EXPECT_TRUE(check.conclusive);
  EXPECT_TRUE(check.warnings.empty());
  EXPECT_NEAR(check.vertical_offset, 0, 0.3);
  EXPECT_NEAR(check.vertical_rms, 0, 0.3);
  EXPECT_NEAR(check.horizontal, 18, 6);
  EXPECT_LT(check.negative_share, 0.05);
}

TEST(PairCheck, SwappedPair) {
  const auto [left, right] = slanted_plane(640, 400, 30);
  const PairCheck check = check_pair(right, left);
  EXPECT_TRUE(check.swapped);
  EXPECT_FALSE(check.not_rectified);
  ASSERT_EQ(check.warnings.size(), 1u);
  EXPECT_TRUE(contains(check.warnings[0], "swapped"));
}

TEST(PairCheck, OffsetTurnAndScale) {
  const auto [left, right] = slanted_plane(640, 400, 30);
  for (double down : {-8.0, -3.0, 3.0, 25.0}) {
    const PairCheck check = check_pair(left, moved(right, down));
    EXPECT_TRUE(check.not_rectified) << down;
    EXPECT_FALSE(check.swapped) << down;
    EXPECT_NEAR(check.vertical_offset, -down, 0.6);
    ASSERT_EQ(check.warnings.size(), 1u);
    EXPECT_TRUE(contains(check.warnings[0], "rectif"));
  }
  for (double degrees : {-1.0, 1.0, 20.0})
    EXPECT_TRUE(check_pair(left, turned(right, degrees)).not_rectified) << degrees;
}

TEST(PairCheck, TakesWhatCamerasDeliver) {
  const auto [left, right] = slanted_plane(640, 400, 30);
  const Image lower = moved(right, 4);
  const PairCheck colour = check_pair(left, lower);
  const Grey grey_left = to_grey(left), grey_right = to_grey(lower);
  const ImageView a{grey_left.values.data(), 640, 400, 0, 1},
      b{grey_right.values.data(), 640, 400, 0, 1};
  EXPECT_TRUE(check_pair(a, b).not_rectified);
  EXPECT_NEAR(check_pair(a, b).vertical_offset, colour.vertical_offset, 0.1);
}

TEST(PairCheck, LargeImagesAreMeasuredInTheirOwnPixels) {
  const auto [left, right] = slanted_plane(2400, 900, 100);
  const PairCheck check = check_pair(left, moved(right, 4));
  EXPECT_TRUE(check.not_rectified);
  EXPECT_NEAR(check.vertical_rms, 4, 0.7);
  EXPECT_TRUE(check_pair(left, right).warnings.empty());
}

TEST(PairCheck, OneImageGivenTwice) {
  const Image left = slanted_plane(640, 400, 30).left;
  const PairCheck check = check_pair(left, left);
  EXPECT_TRUE(check.identical);
  EXPECT_FALSE(check.swapped) << "no motion, no order";
  EXPECT_FALSE(check.not_rectified);
  ASSERT_EQ(check.warnings.size(), 1u);
  EXPECT_TRUE(contains(check.warnings[0], "same"));
}

TEST(PairCheck, UnrelatedImages) {
  const Image left = slanted_plane(640, 400, 30).left;
  const PairCheck check = check_pair(left, test::noise_image(640, 400, 77));
  EXPECT_TRUE(check.unrelated);
  EXPECT_FALSE(check.conclusive);
  ASSERT_EQ(check.warnings.size(), 1u);
  EXPECT_TRUE(contains(check.warnings[0], "different scenes")) << check.warnings[0];
  EXPECT_FALSE(check_pair(left, slanted_plane(640, 400, 30).right).unrelated);
}

TEST(PairCheck, SaysNothingWithoutEvidence) {
  const Image flat = test::plain_image(400, 300, {90, 90, 90});
  EXPECT_FALSE(check_pair(flat, flat).conclusive);
  EXPECT_TRUE(check_pair(flat, flat).warnings.empty());
  const Image left = slanted_plane(640, 400, 30).left;
  const Image tiny = test::noise_image(12, 9, 1);
  EXPECT_FALSE(check_pair(tiny, tiny).conclusive);
  const Image slim = test::noise_image(40, 700, 1);
  EXPECT_FALSE(check_pair(slim, slim).not_rectified);
  test::error_of(ErrorKind::kInput, [&] { check_pair(left, tiny); });
  test::error_of(ErrorKind::kInput, [&] { check_pair(ImageView(), ImageView()); });
}

TEST(PairCheck, Repeats) {
  const auto [left, right] = slanted_plane(500, 300, 20);
  const PairCheck first = check_pair(left, right), second = check_pair(left, right);
  EXPECT_EQ(first.matches, second.matches);
  EXPECT_EQ(first.vertical_rms, second.vertical_rms);
}

// FAST by its definition.
int plain_score(const Image& image, int x, int y) {
  static const int circle[16][2] = {{0, 3},  {1, 3},  {2, 2},  {3, 1},   {3, 0},   {3, -1},
                                    {2, -2}, {1, -3}, {0, -3}, {-1, -3}, {-2, -2}, {-3, -1},
                                    {-3, 0}, {-3, 1}, {-2, 2}, {-1, 3}};
  int best = 0;
  for (int sign : {-1, 1})
    for (int first = 0; first < 16; ++first) {
      int least = 255;
      for (int i = first; i < first + 9; ++i) {
        const auto* d = circle[i % 16];
        least = std::min(least, sign * (image.row(y + d[1])[x + d[0]] - image.row(y)[x]));
      }
      best = std::max(best, least);
    }
  return best;
}

TEST(ImageFeatures, CornersEqualTheirDefinition) {
  for (int width : {9, 40, 71, 150}) {
    const Image image = [&] {
      Image noise(width, 30, 1);
      Rng rng(static_cast<std::uint64_t>(width));
      // Patches, so that there are arcs.
      for (int y = 0; y < 30; ++y)
        for (int x = 0; x < width; ++x)
          noise.row(y)[x] = static_cast<std::uint8_t>((x / 3 * 37 + y / 4 * 91) % 5 * 50 +
                                                      static_cast<int>(rng.integer(0, 25)));
      return noise;
    }();
    std::vector<std::int32_t> found(static_cast<std::size_t>(width) + 64);
    int corners = 0;
    for (int y = 3; y < 20; ++y) {
      std::vector<int> expected;
      for (int x = 3; x < width - 3; ++x) {
        EXPECT_EQ(kernels::fast_score(image.row(y) + x, width), plain_score(image, x, y));
        if (plain_score(image, x, y) > 20) expected.push_back(x);
      }
      const int count = kernels::fast_corners(image.row(y), width, 3, width - 3, 20, found.data());
      EXPECT_EQ(std::vector<int>(found.begin(), found.begin() + count), expected);
      corners += count;
    }
    EXPECT_TRUE(width < 40 || corners > 0) << "the case shows nothing";
  }
}

TEST(ImageFeatures, MatchesAreMutuallyNearest) {
  Rng rng(4);
  for (const auto& [n, m] : std::vector<std::pair<int, int>>{{1, 1}, {5, 19}, {33, 8}, {70, 71}}) {
    auto random = [&](int count) {
      Features features;
      features.places.resize(static_cast<std::size_t>(count));
      features.step = (features.places.size() + 7) / 8 * 8;
      features.words.resize(4 * features.step);
      for (auto& word : features.words) word = rng.next() & rng.next();
      return features;
    };
    const Features left = random(n), right = random(m);
    auto distance = [&](int i, int j) {
      int sum = 0;
      for (std::size_t k = 0; k < 4; ++k)
        sum += __builtin_popcountll(left.words[k * left.step + static_cast<std::size_t>(i)] ^
                                    right.words[k * right.step + static_cast<std::size_t>(j)]);
      return sum;
    };
    std::vector<std::pair<int, int>> expected;
    for (int i = 0; i < n; ++i) {
      int j = 0, back = 0;
      for (int k = 1; k < m; ++k)
        if (distance(i, k) < distance(i, j)) j = k;
      for (int k = 1; k < n; ++k)
        if (distance(k, j) < distance(back, j)) back = k;
      if (back == i && distance(i, j) <= 90) expected.emplace_back(i, j);
    }
    std::vector<std::pair<int, int>> found;
    for (const auto& match : match_features(left, right, 90)) {
      found.emplace_back(match.left, match.right);
      EXPECT_EQ(match.distance, distance(found.back().first, found.back().second));
    }
    EXPECT_EQ(found, expected);
  }
  EXPECT_TRUE(match_features(Features(), Features(), 90).empty());
}

}  // namespace
}  // namespace nmrf
