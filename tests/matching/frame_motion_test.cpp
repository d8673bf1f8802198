#include "matching/frame_motion.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "matching/pictures.h"

namespace nmrf {
namespace {

// Columns and rows from (top, left) on of soft noise.
Image part_of(const Image& wide, int top, int left, int width, int height) {
  Image result(width, height);
  for (int y = 0; y < height; ++y)
    std::copy_n(wide.row(top + y) + 3 * left, 3 * width, result.row(y));
  return result;
}

// Noise that is smooth enough for a pyramid.
Image soft_noise(int width, int height, std::uint64_t seed) {
  const Image coarse = test::noise_image(width / 6 + 2, height / 6 + 2, seed);
  Image result(width, height);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c) {
        const float v = static_cast<float>(y) / 6, u = static_cast<float>(x) / 6;
        const int i = static_cast<int>(v), j = static_cast<int>(u);
        const float down = v - static_cast<float>(i), right = u - static_cast<float>(j);
        auto at = [&](int r, int k) { return static_cast<float>(coarse.row(r)[3 * k + c]); };
        const float above = at(i, j) * (1 - right) + at(i, j + 1) * right,
                    below = at(i + 1, j) * (1 - right) + at(i + 1, j + 1) * right;
        result.row(y)[3 * x + c] =
            static_cast<std::uint8_t>(std::lround(above * (1 - down) + below * down));
      }
  return result;
}

// The differences of whole blocks against those of single pixels, borders included.
TEST(FrameMotion, DifferencesOfBlocks) {
  constexpr int kWidth = 101, kHeight = 59, kBlock = FrameMotion::kBlock;
  const Image wide = soft_noise(kWidth + 60, kHeight + 60, 2);
  ThreadPool pool(2);
  FrameMotion motion;
  motion.next(part_of(wide, 30, 30, kWidth, kHeight), pool);
  motion.next(part_of(wide, 23, 41, kWidth, kHeight), pool);
  int moved = 0;
  for (int y = 0; y < kHeight; y += kBlock)
    for (int x = 0; x < kWidth; x += kBlock) {
      FrameMotion::BlockDifferences found;
      motion.differences(y, x, found);
      moved += motion.at(y, x).x != 0;
      for (int i = 0; i < std::min(kBlock, kHeight - y); ++i)
        for (int j = 0; j < std::min(kBlock, kWidth - x); ++j)
          ASSERT_EQ(found[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)],
                    motion.difference(y + i, x + j))
              << y + i << ' ' << x + j;
    }
  EXPECT_GT(moved, 20);
}

TEST(FrameMotion, FindsAShift) {
  constexpr int kWidth = 203, kHeight = 117;
  const Image wide = soft_noise(kWidth + 60, kHeight + 60, 1);
  ThreadPool one(1), three(3);
  for (const auto& [x, y] : {std::pair(0, 0), std::pair(7, -3), std::pair(-19, 6)}) {
    FrameMotion motion, shared;
    for (FrameMotion* each : {&motion, &shared}) {
      ThreadPool& pool = each == &motion ? one : three;
      each->next(part_of(wide, 30, 30, kWidth, kHeight), pool);
      EXPECT_FALSE(each->known());
      // A point at p before is at p - (x, y) now.
      each->next(part_of(wide, 30 + y, 30 + x, kWidth, kHeight), pool);
      ASSERT_TRUE(each->known());
    }
    EXPECT_GT(motion.correlation(), 0.85);  // the border has no former place
    int right = 0, all = 0;
    for (int v = 24; v + 24 < kHeight; v += 8)
      for (int u = 32; u + 32 < kWidth; u += 8) {
        const auto found = motion.at(v, u);
        right += found.x == x && found.y == y;
        ++all;
        EXPECT_EQ(found.x, shared.at(v, u).x);
        EXPECT_EQ(found.y, shared.at(v, u).y);
      }
    EXPECT_GT(right, 0.9 * all) << x << ", " << y;
    EXPECT_LE(motion.difference(kHeight / 2, kWidth / 2), 2);
  }
}

TEST(FrameMotion, ACutIsNoMotion) {
  ThreadPool pool(1);
  FrameMotion motion;
  motion.next(soft_noise(160, 120, 1), pool);
  motion.next(soft_noise(160, 120, 2), pool);
  EXPECT_LT(motion.correlation(), 0.7);
  EXPECT_LT(motion.coherence(), 0.4);
  motion.next(soft_noise(160, 120, 2), pool);
  EXPECT_GT(motion.correlation(), 0.99);
  EXPECT_EQ(motion.coherence(), 1);
  // Another size, and a restart, begin anew.
  motion.next(soft_noise(128, 120, 2), pool);
  EXPECT_FALSE(motion.known());
  motion.next(soft_noise(128, 120, 2), pool);
  EXPECT_TRUE(motion.known());
  motion.restart();
  EXPECT_FALSE(motion.known());
  const Image plain = test::plain_image(128, 120, {90, 90, 90});
  motion.next(plain, pool);
  motion.next(plain, pool);
  EXPECT_EQ(motion.correlation(), 1);
}

}  // namespace
}  // namespace nmrf
