// Video: the scale is chosen once and kept, maps guide the next, noise is averaged.
#include "nmrf/sequence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/rng.h"
#include "kernels/resample.h"
#include "matching/pictures.h"

namespace nmrf {
namespace {

using test::same;

const Matcher& matcher() {
  static const Matcher instance =
      Matcher::load(NMRF_SOURCE_DIR "/models/nmrf-fast.safetensors", {.threads = 2});
  return instance;
}

struct Pair {
  Image left, right;
};

// Smooth noise, shifted by `shift` pixels.
Pair pair(int width, int height, int shift, std::uint64_t seed) {
  const Image coarse = test::noise_image((width + shift) / 4 + 1, height / 4 + 1, seed);
  Image wide(4 * coarse.width(), 4 * coarse.height());
  kernels::Resampler resampler;
  resampler.prepare(kernels::Resampling::kBicubic, coarse.width(), coarse.height(), wide.width(),
                    wide.height());
  std::vector<float> work(resampler.work_floats());
  resampler.rows(coarse.data(), static_cast<std::ptrdiff_t>(coarse.row_bytes()), wide.data(),
                 static_cast<std::ptrdiff_t>(wide.row_bytes()), 0, wide.height(), work.data());
  Pair result{Image(width, height), Image(width, height)};
  for (int y = 0; y < height; ++y) {
    std::copy_n(wide.row(y), 3 * width, result.left.row(y));
    std::copy_n(wide.row(y) + 3 * shift, 3 * width, result.right.row(y));
  }
  return result;
}

TEST(Sequence, KeepsTheScale) {
  const Pair first = pair(144, 96, 8, 1), second = pair(144, 96, 9, 2);
  Sequence sequence(matcher());
  const FloatMap alone = matcher().match(first.left, first.right).map;
  EXPECT_TRUE(same(sequence.next(first.left, first.right).map, alone));
  const double scale = matcher().best_scale(alone);
  ASSERT_GT(scale, 1) << "the case shows nothing";
  const MatchOptions kept{.scale = scale, .full_size = true};
  EXPECT_TRUE(same(sequence.next(second.left, second.right).map,
                   matcher().match(second.left, second.right, kept).map));
  // As after a cut, and for images of another size.
  sequence.restart();
  EXPECT_TRUE(same(sequence.next(first.left, first.right).map, alone));
  const Pair other = pair(128, 80, 8, 3);
  EXPECT_TRUE(same(sequence.next(other.left, other.right).map,
                   matcher().match(other.left, other.right).map));
}

TEST(Sequence, FollowsItsOptions) {
  const Pair first = pair(144, 96, 8, 4), second = pair(144, 96, 9, 5);
  for (const MatchOptions& how :
       {MatchOptions{.scale = 0.5}, MatchOptions{.scale = 1}, MatchOptions{.keep_labels = true}}) {
    Sequence sequence(matcher(), how);
    for (const Pair* frame : {&first, &second}) {
      const Disparity& found = sequence.next(frame->left, frame->right);
      const Disparity expected = matcher().match(frame->left, frame->right, how);
      EXPECT_TRUE(same(found.map, expected.map));
      EXPECT_EQ(found.labels.values, expected.labels.values);
    }
  }
  Sequence right(matcher(), {.view = View::kRight});
  EXPECT_TRUE(same(right.next(first.left, first.right).map,
                   matcher().match(first.left, first.right, {.view = View::kRight}).map));
}

TEST(Sequence, GoesOnAfterABadFrame) {
  const Pair frame = pair(144, 96, 8, 6);
  Sequence sequence(matcher());
  EXPECT_THROW(sequence.next(frame.left, Image(144, 95)), Error);
  EXPECT_TRUE(same(sequence.next(frame.left, frame.right).map,
                   matcher().match(frame.left, frame.right).map));
}

// The same scene with other noise: frames follow each other, and the maps change less than alone.
TEST(Sequence, StaysCalm) {
  const Pair still = pair(160, 112, 9, 7);
  Rng rng(3);
  Sequence sequence(matcher(), {.scale = 1});
  FloatMap before, before_alone;
  double change = 0, alone_change = 0;
  for (int frame = 0; frame < 4; ++frame) {
    Pair noisy = still;
    for (Image* image : {&noisy.left, &noisy.right})
      for (int y = 0; y < image->height(); ++y)
        for (std::size_t i = 0; i < image->row_bytes(); ++i)
          image->row(y)[i] = static_cast<std::uint8_t>(
              std::clamp<std::int64_t>(image->row(y)[i] + rng.integer(-9, 9), 0, 255));
    const FloatMap map = sequence.next(noisy.left, noisy.right).map;
    const FloatMap alone = matcher().match(noisy.left, noisy.right, {.scale = 1}).map;
    EXPECT_EQ(sequence.continued(), frame > 0);
    if (frame == 0) {
      EXPECT_TRUE(same(map, alone));
    }
    if (frame > 1)
      for (std::size_t i = 0; i < map.size(); ++i) {
        change += std::abs(map.data()[i] - before.data()[i]);
        alone_change += std::abs(alone.data()[i] - before_alone.data()[i]);
      }
    before = map;
    before_alone = alone;
  }
  EXPECT_LT(change, 0.7 * alone_change);
  // After a cut the first frame is as good as alone.
  const Pair other = pair(160, 112, 20, 8);
  EXPECT_TRUE(same(sequence.next(other.left, other.right).map,
                   matcher().match(other.left, other.right, {.scale = 1}).map));
  EXPECT_FALSE(sequence.continued());
}

TEST(Matcher, AGuideHasTheSizeOfTheImages) {
  const Pair frame = pair(144, 96, 8, 9);
  const FloatMap guide(144, 96, 8.0f), wrong(143, 96, 8.0f);
  MatchOptions how{.scale = 1};
  how.guide = &wrong;
  EXPECT_THROW(matcher().match(frame.left, frame.right, how), Error);
  how.guide = &guide;
  const Disparity left = matcher().match(frame.left, frame.right, how);
  double error = 0;
  for (int y = 8; y < 88; ++y)
    for (int x = 24; x < 136; ++x) error += std::abs(left.map.at(y, x) - 8);
  EXPECT_LT(error / (80 * 112), 0.5);
  how.view = View::kRight;
  EXPECT_TRUE(left.map.same_size(matcher().match(frame.left, frame.right, how).map));
}

}  // namespace
}  // namespace nmrf
