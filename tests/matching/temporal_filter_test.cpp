#include "matching/temporal_filter.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/rng.h"
#include "matching/pictures.h"

namespace nmrf {
namespace {

constexpr int kWidth = 128, kHeight = 96;

Disparity noisy(float base, float slope, double noise, std::uint64_t seed, float error = 1) {
  Rng rng(seed);
  Disparity d;
  d.map = FloatMap(kWidth, kHeight);
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x)
      d.map.at(y, x) =
          base + slope * static_cast<float>(y) + static_cast<float>(rng.uniform(-noise, noise));
  d.confidence = d.confidence3 = FloatMap(kWidth, kHeight, 0.5f);
  d.expected_error = FloatMap(kWidth, kHeight, error);
  return d;
}

double mean_change(const FloatMap& a, const FloatMap& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(a.data()[i] - b.data()[i]);
  return sum / static_cast<double>(a.size());
}

// A still image whose surface comes nearer: noise falls, and the motion is followed without a lag.
TEST(TemporalFilter, AveragesNoiseAndFollowsMotion) {
  ThreadPool pool(1);
  const Image image = test::noise_image(kWidth, kHeight, 1);
  FrameMotion motion;
  TemporalFilter filter;
  motion.next(image, pool);
  EXPECT_FALSE(filter.ready(kWidth, kHeight));
  filter.remember(noisy(20, 0.05f, 0.3, 1));
  EXPECT_TRUE(filter.ready(kWidth, kHeight));
  double raw = 0, filtered = 0, lag = 0;
  for (std::uint64_t frame = 1; frame < 8; ++frame) {
    motion.next(image, pool);
    filter.moved(motion, pool);
    const float base = 20 + 0.3f * static_cast<float>(frame);
    Disparity d = noisy(base, 0.05f, 0.3, frame + 1);
    const Disparity truth = noisy(base, 0.05f, 0, 1);
    raw += mean_change(d.map, truth.map);
    filter.apply(d, pool);
    filter.remember(d);
    filtered += mean_change(d.map, truth.map);
    double sum = 0;
    for (std::size_t i = 0; i < d.map.size(); ++i) sum += d.map.data()[i] - truth.map.data()[i];
    lag = sum / static_cast<double>(d.map.size());
  }
  EXPECT_LT(filtered, 0.7 * raw);
  EXPECT_LT(std::abs(lag), 0.03);
}

TEST(TemporalFilter, KeepsWhatIsTrustedMore) {
  ThreadPool pool(1);
  const Image image = test::noise_image(kWidth, kHeight, 2);
  FrameMotion motion;
  motion.next(image, pool);
  motion.next(image, pool);
  for (float error : {0.5f, 3.0f}) {
    TemporalFilter filter;
    filter.remember(noisy(20, 0, 0, 1, 1));
    filter.moved(motion, pool);
    Disparity d = noisy(20, 0, 0, 1, 1);
    d.map.at(40, 40) = 60;
    d.expected_error.at(40, 40) = error;
    filter.apply(d, pool);
    EXPECT_EQ(d.map.at(40, 40), error > 1 ? 20 : 60);
    EXPECT_FLOAT_EQ(d.expected_error.at(40, 40), error > 1 ? 1.03f : 0.5f);
    EXPECT_EQ(d.map.at(40, 41), 20);
  }
}

// Where the images differ nothing of the old map stays.
TEST(TemporalFilter, LeavesWhatChanged) {
  ThreadPool pool(1);
  FrameMotion motion;
  motion.next(test::plain_image(kWidth, kHeight, {40, 40, 40}), pool);
  motion.next(test::plain_image(kWidth, kHeight, {90, 90, 90}), pool);
  TemporalFilter filter;
  filter.remember(noisy(20, 0, 0, 1));
  filter.moved(motion, pool);
  Disparity d = noisy(20.5f, 0, 0, 1);
  const FloatMap before = d.map;
  filter.apply(d, pool);
  EXPECT_TRUE(test::same(d.map, before));
}

}  // namespace
}  // namespace nmrf
