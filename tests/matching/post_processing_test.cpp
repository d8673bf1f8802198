// A match ends with hole filling and the weighted median, on the view's own image and at the size
// of the result.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/resample.h"
#include "matching/hole_filling.h"
#include "matching/pictures.h"
#include "matching/weighted_median.h"
#include "nmrf/matcher.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::same;

Image mirrored(const Image& image) {
  Image result(image.width(), image.height());
  for (int y = 0; y < image.height(); ++y)
    for (int x = 0; x < image.width(); ++x)
      std::copy_n(image.row(y) + 3 * x, 3, result.row(y) + 3 * (image.width() - 1 - x));
  return result;
}

template <class T>
Map<T> mirrored(Map<T> map) {
  for (int y = 0; y < map.height(); ++y) std::reverse(map.row(y), map.row(y) + map.width());
  return map;
}

Image reduced(const Image& image, int width, int height) {
  Image result(width, height);
  kernels::Resampler resampler;
  resampler.prepare(kernels::Resampling::kArea, image.width(), image.height(), width, height);
  std::vector<float> work(resampler.work_floats());
  resampler.rows(image.data(), static_cast<std::ptrdiff_t>(image.row_bytes()), result.data(),
                 static_cast<std::ptrdiff_t>(result.row_bytes()), 0, height, work.data());
  return result;
}

Matcher load(int fill, int median) {
  return Matcher::load(NMRF_SOURCE_DIR "/models/nmrf-fast.safetensors",
                       {.threads = 2,
                        .max_disp = 64,
                        .set = {"match.fill=" + std::to_string(fill),
                                "match.median=" + std::to_string(median), "match.enlarge=128"}});
}

TEST(PostProcessing, EndsAMatch) {
  const Image left = test::noise_image(110, 72, 8), right = test::noise_image(110, 72, 9);
  const Matcher with = load(4, 3), without = load(0, 0);
  ThreadPool pool(2);
  // image: as seen in the mirror for the right view.
  auto expect_composed = [&](const MatchOptions& how, const Image& image) {
    const Disparity raw = without.match(left, right, how), found = with.match(left, right, how);
    const bool turned = how.view == View::kRight;
    const FloatMap map = turned ? mirrored(raw.map) : raw.map;
    FloatMap filled = map;
    ByteMap mask;
    HoleFilling().apply(filled, image, 4, mask, pool);
    FloatMap expected = filled;
    WeightedMedian().apply(expected, image, 3, pool);
    EXPECT_TRUE(same(found.map, turned ? mirrored(expected) : expected));
    EXPECT_TRUE(found.mask == (turned ? mirrored(mask) : mask));
    EXPECT_FALSE(same(filled, map)) << "the case shows nothing";
    EXPECT_FALSE(same(expected, filled)) << "the case shows nothing";
    for (std::size_t i = 0; i < found.mask.size(); ++i) {
      EXPECT_EQ(found.posterior.data()[i], raw.posterior.data()[i]);
      EXPECT_EQ(raw.mask.data()[i], found.mask.data()[i] & ~kFilled);
    }
  };
  expect_composed({}, left);
  expect_composed({.scale = 1}, left);
  expect_composed({.view = View::kRight}, mirrored(right));
  expect_composed({.view = View::kRight, .scale = 0.5}, reduced(mirrored(right), 55, 36));
  expect_composed({.scale = 0.5, .full_size = true}, left);
}

TEST(PostProcessing, RadiiAreChecked) {
  test::error_of(ErrorKind::kModel, [] { load(0, 17); });
  test::error_of(ErrorKind::kModel, [] { load(-1, 5); });
}

}  // namespace
}  // namespace nmrf
