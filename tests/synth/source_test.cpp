// Scenes rendered on the fly for training.
#include <gtest/gtest.h>

#include "support/mats.h"
#include "support/support.h"
#include "synth/synth.h"
#include "synth/synth_source.h"

namespace nmrf {
namespace {

using test::same;

AugmentOptions crop(int height, int width) {
  AugmentOptions augment;
  augment.crop_height = height;
  augment.crop_width = width;
  return augment;
}

SynthOptions settings() {
  SynthOptions options;
  options.max_disp = 40;
  options.seed = 5;
  return options;
}

TEST(SynthSource, SamplesHaveTheCropAndTruthEverywhere) {
  SynthSource source(settings(), crop(72, 104), true);
  EXPECT_FALSE(source.size().has_value());
  for (std::int64_t i : {0, 1, 123456}) {
    Sample sample = source.get(i, 9);
    EXPECT_EQ(sample.left.size(), cv::Size(104, 72));
    EXPECT_EQ(sample.right.size(), cv::Size(104, 72));
    ASSERT_EQ(sample.disparity.size(), cv::Size(104, 72));
    for (float d : cv::Mat_<float>(sample.disparity)) {
      ASSERT_GE(d, 0);
      ASSERT_LE(d, 40);
    }
    ASSERT_EQ(sample.modals.size(), cv::Size(13, 9));
    ASSERT_EQ(sample.modals.type(), CV_32FC4);
    // The first modal of a cell is one of its disparities.
    for (int y = 0; y < 9; ++y)
      for (int x = 0; x < 13; ++x) {
        double low = 0, high = 0;
        cv::minMaxLoc(sample.disparity(cv::Rect(8 * x, 8 * y, 8, 8)), &low, &high);
        const float first = sample.modals.at<cv::Vec4f>(y, x)[0];
        ASSERT_GE(first, low - 1e-4);
        ASSERT_LE(first, high + 1e-4);
      }
    EXPECT_NE(source.describe(i).find(std::to_string(i)), std::string::npos);
  }
}

TEST(SynthSource, RepeatsAndDiffers) {
  SynthSource source(settings(), crop(64, 96), false);
  Sample a = source.get(3, 9), again = source.get(3, 9), other = source.get(4, 9);
  EXPECT_TRUE(same(a.left, again.left) && same(a.right, again.right));
  EXPECT_TRUE(same(a.disparity, again.disparity));
  EXPECT_FALSE(same(a.disparity, other.disparity));
  EXPECT_TRUE(a.modals.empty());
  // Another draw seed: the same scene, other colours.
  Sample drawn = source.get(3, 10);
  EXPECT_TRUE(same(a.disparity, drawn.disparity));
  EXPECT_FALSE(same(a.left, drawn.left));
  SynthOptions seeded = settings();
  seeded.seed = 6;
  EXPECT_FALSE(same(a.disparity, SynthSource(seeded, crop(64, 96), false).get(3, 9).disparity));
}

TEST(SynthSource, WithoutAugmentationItIsTheRenderersPair) {
  AugmentOptions plain = crop(64, 96);
  plain.enabled = false;
  SynthOptions options = settings();
  Sample sample = SynthSource(options, plain, false).get(2, 1);
  options.width = 96;
  options.height = 64;
  SynthPair pair = render_pair(options, 5, 2);
  EXPECT_TRUE(same(sample.left, pair.left));
  EXPECT_TRUE(same(sample.right, pair.right));
  EXPECT_TRUE(same(sample.disparity, pair.left_disparity));
  EXPECT_TRUE(same(sample.noc_mask, 255 - pair.left_occluded));
}

TEST(SynthSource, BadSettingsAreRefused) {
  SynthOptions options = settings();
  options.max_disp = -1;
  test::error_of(ErrorKind::kUsage, [&] { SynthSource(options, crop(64, 96), false); });
}

}  // namespace
}  // namespace nmrf
