// Video: the scale is chosen once and kept.
#include "nmrf/sequence.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace nmrf
