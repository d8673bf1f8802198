#include "data/augment.h"

#include <cmath>
#include <limits>
#include <opencv2/imgproc.hpp>

#include "data/trees.h"
#include "support/support.h"

namespace nmrf {
namespace {

namespace parts = augment_parts;
constexpr float kInf = std::numeric_limits<float>::infinity();

// Disparity that tells the place it came from: d = 0.01 * (x + 100 y).
Sample make_sample(int width, int height, bool sparse) {
  Sample sample;
  sample.name = "made";
  sample.sparse = sparse;
  sample.left = test::noise_image(width, height, 11);
  sample.right = test::noise_image(width, height, 12);
  sample.disparity.create(height, width, CV_32FC1);
  sample.objects.create(height, width, CV_32SC1);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      sample.disparity.at<float>(y, x) = 0.01f * static_cast<float>(x + 100 * y);
      sample.objects.at<int>(y, x) = (1 << 30) + x + 1000 * y;  // needs all 31 bits
    }
  sample.right_disparity = sample.disparity + 1;
  sample.noc_mask.create(height, width, CV_8UC1);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) sample.noc_mask.at<std::uint8_t>(y, x) = (x + y) % 2 ? 255 : 0;
  return sample;
}

bool equal(const cv::Mat& a, const cv::Mat& b) {
  if (a.size() != b.size() || a.type() != b.type()) return false;
  for (int y = 0; y < a.rows; ++y)
    if (std::memcmp(a.ptr(y), b.ptr(y), static_cast<std::size_t>(a.cols) * a.elemSize()) != 0)
      return false;
  return true;
}

bool equal(const Sample& a, const Sample& b) {
  return equal(a.left, b.left) && equal(a.right, b.right) && equal(a.disparity, b.disparity) &&
         equal(a.right_disparity, b.right_disparity) && equal(a.noc_mask, b.noc_mask) &&
         equal(a.objects, b.objects);
}

Sample copy_of(const Sample& sample) {
  Sample copy = sample;
  for (cv::Mat* map : {&copy.left, &copy.right, &copy.disparity, &copy.right_disparity,
                       &copy.noc_mask, &copy.objects})
    *map = map->clone();
  return copy;
}

AugmentOptions small_crop() {
  AugmentOptions options;
  options.crop_width = 40;
  options.crop_height = 24;
  options.eraser_low = 5;
  options.eraser_high = 9;
  return options;
}

TEST(Augment, RepeatsExactlyAndLeavesTheInputAlone) {
  for (bool sparse : {false, true}) {
    Sample input = make_sample(90, 60, sparse);
    Sample before = copy_of(input);
    AugmentOptions options = small_crop();
    options.mirror = options.flip = 0.5;
    bool differs = false;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      Rng a(seed), b(seed), c(seed + 1000);
      Sample first = augment(input, options, a);
      EXPECT_TRUE(equal(first, augment(input, options, b)));
      differs |= !equal(first, augment(input, options, c));
      EXPECT_EQ(first.left.size(), cv::Size(40, 24));
      EXPECT_EQ(first.disparity.size(), cv::Size(40, 24));
      EXPECT_TRUE(first.left.isContinuous());
    }
    EXPECT_TRUE(differs);
    EXPECT_TRUE(equal(input, before)) << "copies of a cv::Mat share pixels";
  }
}

TEST(Augment, CropKeepsEverythingInStep) {
  Sample input = make_sample(90, 60, false);
  AugmentOptions options = small_crop();
  options.eraser = 0;
  options.dense = {0, 0, 1, 1, 0, 0, 0};
  options.asymmetric = 0;
  int least_x = 1000, most_x = 0, least_y = 1000, most_y = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Rng rng(seed);
    Sample out = augment(input, options, rng);
    int place = static_cast<int>(std::lround(out.disparity.at<float>(0, 0) * 100));
    int x = place % 100, y = place / 100;
    cv::Rect window(x, y, 40, 24);
    EXPECT_TRUE(equal(out.left, input.left(window)));
    EXPECT_TRUE(equal(out.right, input.right(window)));
    EXPECT_TRUE(equal(out.disparity, input.disparity(window)));
    EXPECT_TRUE(equal(out.right_disparity, input.right_disparity(window)));
    EXPECT_TRUE(equal(out.noc_mask, input.noc_mask(window)));
    EXPECT_TRUE(equal(out.objects, input.objects(window)));
    least_x = std::min(least_x, x);
    most_x = std::max(most_x, x);
    least_y = std::min(least_y, y);
    most_y = std::max(most_y, y);
  }
  EXPECT_EQ(least_x, 0);
  EXPECT_EQ(most_x, 50);
  EXPECT_EQ(least_y, 0);
  EXPECT_EQ(most_y, 36);
}

TEST(Augment, SmallImagesArePaddedAtTheRightAndTheBottom) {
  Sample input = make_sample(31, 20, false);
  AugmentOptions options = small_crop();
  options.enabled = false;
  Rng rng(1);
  Sample out = augment(input, options, rng);
  ASSERT_EQ(out.left.size(), cv::Size(40, 24));
  EXPECT_TRUE(equal(out.left(cv::Rect(0, 0, 31, 20)).clone(), input.left));
  EXPECT_EQ(out.left.at<cv::Vec3b>(5, 39), input.left.at<cv::Vec3b>(5, 30));
  EXPECT_EQ(out.right.at<cv::Vec3b>(23, 7), input.right.at<cv::Vec3b>(19, 7));
  EXPECT_EQ(cv::countNonZero(out.disparity == kInf), 40 * 24 - 31 * 20);
  EXPECT_EQ(out.noc_mask.at<std::uint8_t>(3, 35), 0);
  EXPECT_EQ(out.objects.at<int>(3, 35), 0);
}

TEST(Augment, DisabledCutsTheMiddle) {
  Sample input = make_sample(90, 60, true);
  AugmentOptions options = small_crop();
  options.enabled = false;
  Rng rng(1);
  Sample out = augment(input, options, rng);
  EXPECT_TRUE(equal(out.left, input.left(cv::Rect(25, 18, 40, 24))));
  options.crop_width = options.crop_height = 0;
  EXPECT_TRUE(equal(augment(input, options, rng), input));
}

TEST(Augment, SparseScalesWithinItsRangeButNotBelowTheCrop) {
  Sample input = make_sample(90, 60, true);
  AugmentOptions options;
  options.crop_width = options.crop_height = 0;
  double least = 10, most = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Rng rng(seed);
    Sample out = augment(input, options, rng);
    least = std::min(least, out.left.cols / 90.0);
    most = std::max(most, out.left.cols / 90.0);
    EXPECT_NEAR(out.left.rows / 60.0, out.left.cols / 90.0, 0.02);
  }
  EXPECT_NEAR(least, std::exp2(-0.2), 0.02);
  EXPECT_NEAR(most, std::exp2(0.4), 0.02);
  options.crop_width = 88;
  options.crop_height = 30;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Rng rng(seed);
    Sample out = augment(input, options, rng);
    // Padding would leave the last column without any truth.
    EXPECT_GT(cv::countNonZero(out.disparity.colRange(86, 88) < 1e9f), 0);
  }
}

TEST(AugmentParts, SparseResizeMovesKnownPixels) {
  Sample sample = make_sample(20, 10, true);
  sample.disparity.setTo(kInf);
  sample.disparity.at<float>(4, 6) = 8;
  sample.disparity.at<float>(0, 0) = 3;
  sample.disparity.at<float>(9, 19) = 5;
  Sample larger = copy_of(sample);
  parts::resize(larger, {30, 20});
  EXPECT_EQ(larger.left.size(), cv::Size(30, 20));
  EXPECT_EQ(cv::countNonZero(larger.disparity < 1e9f), 3) << "no pixel is invented";
  // Centre (6.5, 4.5) goes to (9.75, 9), the pixel of which is (9, 8) or (9, 9).
  EXPECT_FLOAT_EQ(std::min(larger.disparity.at<float>(8, 9), larger.disparity.at<float>(9, 9)), 12);
  EXPECT_EQ(cv::countNonZero(larger.objects >= (1 << 30)), 600) << "ids are copied, not mixed";

  Sample smaller = copy_of(sample);
  parts::resize(smaller, {10, 10});
  EXPECT_FLOAT_EQ(smaller.disparity.at<float>(4, 3), 4) << "scaled by the width alone";
  EXPECT_FLOAT_EQ(smaller.disparity.at<float>(0, 0), 1.5f);
  EXPECT_FLOAT_EQ(smaller.disparity.at<float>(9, 9), 2.5f);
}

TEST(AugmentParts, OfTwoEquallyClosePixelsTheNearerSurfaceStays) {
  Sample sample = make_sample(4, 1, true);
  sample.disparity = (cv::Mat_<float>(1, 4) << 2, 6, 10, 4);
  sample.right_disparity.release();
  parts::resize(sample, {2, 1});
  EXPECT_FLOAT_EQ(sample.disparity.at<float>(0, 0), 3);
  EXPECT_FLOAT_EQ(sample.disparity.at<float>(0, 1), 5);
}

TEST(AugmentParts, DenseResizeLeavesNoHoles) {
  Sample sample = make_sample(20, 10, false);
  parts::resize(sample, {36, 16});  // no new centre falls between two old pixels
  double ratio = 36.0 / 20;
  for (int y = 0; y < 16; ++y)
    for (int x = 0; x < 36; ++x) {
      int from_x = static_cast<int>((x + 0.5) / ratio), from_y = static_cast<int>((y + 0.5) / 1.6);
      EXPECT_NEAR(sample.disparity.at<float>(y, x), ratio * 0.01 * (from_x + 100 * from_y), 1e-4)
          << x << " " << y;
    }
}

// A pair whose right view is the left one moved: mirrored and swapped it must be such a pair again.
TEST(AugmentParts, MirrorAndSwapGivesAValidPair) {
  const int width = 40, height = 8, shift = 5;
  cv::Mat wide = test::noise_image(width + shift, height, 3);
  Sample sample;
  sample.left = wide.colRange(0, width).clone();
  sample.right = wide.colRange(shift, width + shift).clone();  // right(x - 5) = left(x)
  sample.disparity = cv::Mat(height, width, CV_32FC1, cv::Scalar(shift));
  sample.right_disparity = cv::Mat(height, width, CV_32FC1, cv::Scalar(shift));
  sample.right_disparity.at<float>(0, 0) = kInf;
  sample.noc_mask = cv::Mat(height, width, CV_8UC1, cv::Scalar(255));
  parts::mirror_and_swap(sample);
  EXPECT_EQ(sample.disparity.at<float>(0, width - 1), kInf) << "the right view's truth, mirrored";
  EXPECT_TRUE(sample.noc_mask.empty());
  for (int y = 0; y < height; ++y)
    for (int x = shift; x < width; ++x)
      EXPECT_EQ(sample.left.at<cv::Vec3b>(y, x), sample.right.at<cv::Vec3b>(y, x - shift));
  sample.right_disparity.release();
  test::error_of(ErrorKind::kUsage, [&] { parts::mirror_and_swap(sample); });
}

TEST(Augment, MirrorNeedsTheRightTruth) {
  AugmentOptions options = small_crop();
  options.mirror = 1;
  Sample input = make_sample(60, 40, false);
  Rng first(1), second(1);
  EXPECT_TRUE(augment(input, options, first).objects.empty()) << "mirrored";
  input.right_disparity.release();
  EXPECT_FALSE(augment(input, options, second).objects.empty()) << "left as it was";
}

TEST(AugmentParts, FlipTurnsEverything) {
  Sample sample = make_sample(9, 5, false);
  Sample before = copy_of(sample);
  parts::flip_vertically(sample);
  for (int y = 0; y < 5; ++y) {
    EXPECT_TRUE(equal(sample.left.row(y).clone(), before.left.row(4 - y).clone()));
    EXPECT_TRUE(equal(sample.disparity.row(y).clone(), before.disparity.row(4 - y).clone()));
    EXPECT_TRUE(equal(sample.objects.row(y).clone(), before.objects.row(4 - y).clone()));
  }
}

TEST(Augment, ErasesTheRightImageOfMirroredPairsToo) {
  Sample input = make_sample(90, 60, false);
  AugmentOptions options = small_crop();
  options.crop_width = options.crop_height = 0;
  options.dense = {0, 0, 1, 1, 0, 0, 0};  // colours and size as they are
  options.mirror = options.eraser = 1;
  cv::Mat left, right;
  cv::flip(input.right, left, 1);
  cv::flip(input.left, right, 1);
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Rng rng(seed);
    Sample out = augment(input, options, rng);
    EXPECT_TRUE(equal(out.left, left));
    EXPECT_FALSE(equal(out.right, right));
  }
}

// The truth tells where a pixel came from: there the source must show what the clean images show.
TEST(Augment, CleanImagesTakeEveryStepButColoursAndPatches) {
  AugmentOptions options = small_crop();
  options.keep_clean = true;
  options.eraser = 1;
  options.mirror = 0.5;
  options.flip = 0.5;
  const Sample source = make_sample(80, 60, false);
  int mirrored_pairs = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Rng rng(seed);
    const Sample sample = augment(source, options, rng);
    ASSERT_EQ(sample.clean_left.size(), sample.left.size());
    EXPECT_FALSE(equal(sample.clean_right, sample.right));
    const bool mirrored = sample.disparity.at<float>(0, 1) < sample.disparity.at<float>(0, 0);
    mirrored_pairs += mirrored;
    const cv::Mat& seen = mirrored ? source.right : source.left;
    int wrong = 0;
    for (int y = 0; y < sample.left.rows; ++y)
      for (int x = 0; x < sample.left.cols; ++x) {
        const int place = cvRound(100 * (sample.disparity.at<float>(y, x) - (mirrored ? 1 : 0)));
        wrong +=
            sample.clean_left.at<cv::Vec3b>(y, x) != seen.at<cv::Vec3b>(place / 100, place % 100);
      }
    EXPECT_EQ(wrong, 0) << seed;
  }
  EXPECT_GT(mirrored_pairs, 0);
  EXPECT_LT(mirrored_pairs, 12);
  options.keep_clean = false;
  Rng rng(1);
  EXPECT_TRUE(augment(source, options, rng).clean_left.empty());
}

TEST(AugmentParts, EraserFillsRectanglesWithTheMean) {
  AugmentOptions options;
  int erased_twice = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    cv::Mat image = test::noise_image(300, 200, 5), before = image.clone();
    Rng rng(seed);
    parts::erase_patches(image, options, rng);
    cv::Mat difference, changed;
    cv::absdiff(image, before, difference);
    cv::inRange(difference, cv::Scalar::all(0), cv::Scalar::all(0), changed);
    changed = ~changed;
    cv::Mat labels, stats, centres;
    cv::Mat grown;
    cv::morphologyEx(changed, grown, cv::MORPH_CLOSE, cv::Mat::ones(3, 3, CV_8U));
    int count = cv::connectedComponentsWithStats(grown, labels, stats, centres) - 1;
    ASSERT_LE(count, 2);
    erased_twice += count == 2;
    for (int i = 1; i <= count; ++i) {
      EXPECT_LE(stats.at<int>(i, cv::CC_STAT_WIDTH), 2 * 100);
      EXPECT_LE(stats.at<int>(i, cv::CC_STAT_HEIGHT), 2 * 100);
    }
    cv::Scalar mean = cv::mean(before);
    for (int y = 0; y < 200; y += 7)
      for (int x = 0; x < 300; x += 7)
        if (changed.at<std::uint8_t>(y, x)) {
          for (int c = 0; c < 3; ++c) EXPECT_NEAR(image.at<cv::Vec3b>(y, x)[c], mean[c], 0.51);
        }
  }
  EXPECT_GT(erased_twice, 20);
}

// Largest difference between the images over all pixels and channels.
double apart(const cv::Mat& a, const cv::Mat& b) { return cv::norm(a, b, cv::NORM_INF); }

TEST(AugmentParts, EachColourStepAgainstAFormula) {
  cv::Mat input = test::noise_image(32, 16, 6), grey;
  cv::cvtColor(input, grey, cv::COLOR_BGR2GRAY);
  const double mean = cv::mean(grey)[0];
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    // With three steps at rest, the fourth is drawn from the stream like in the code.
    Rng peek(seed);
    double brightness = peek.uniform(0.6, 1.4), contrast = peek.uniform(0.6, 1.4),
           saturation = peek.uniform(0, 1.4);
    auto run = [&](const AugmentRanges& ranges) {
      cv::Mat image = input.clone();
      Rng rng(seed);
      parts::jitter_colours({&image}, ranges, rng);
      return image;
    };
    cv::Mat bright = run({0.4, 0, 1, 1, 0, 0, 0}), strong = run({0, 0.4, 1, 1, 0, 0, 0}),
            vivid = run({0, 0, 0, 1.4, 0, 0, 0});
    for (int y = 0; y < 16; ++y)
      for (int x = 0; x < 32; ++x)
        for (int c = 0; c < 3; ++c) {
          double value = input.at<cv::Vec3b>(y, x)[c], grey_value = grey.at<std::uint8_t>(y, x);
          auto clamp = [](double v) { return std::min(255.0, std::max(0.0, v)); };
          EXPECT_NEAR(bright.at<cv::Vec3b>(y, x)[c], clamp(value * brightness), 0.51);
          EXPECT_NEAR(strong.at<cv::Vec3b>(y, x)[c], clamp(mean + (value - mean) * contrast), 1.01);
          EXPECT_NEAR(vivid.at<cv::Vec3b>(y, x)[c],
                      clamp(grey_value + (value - grey_value) * saturation), 0.51);
        }
  }
}

TEST(AugmentParts, HueTurnsTheColourCircle) {
  cv::Mat red(4, 4, CV_8UC3, cv::Scalar(0, 0, 255));
  double least = 1, most = -1;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    cv::Mat image = red.clone(), hsv;
    Rng rng(seed);
    parts::jitter_colours({&image}, {0, 0, 1, 1, 0.5 / 3.14, 0, 0}, rng);
    cv::cvtColor(image, hsv, cv::COLOR_BGR2HSV_FULL);
    double turn = hsv.at<cv::Vec3b>(0, 0)[0] / 256.0;
    if (turn > 0.5) turn -= 1;
    least = std::min(least, turn);
    most = std::max(most, turn);
    EXPECT_EQ(hsv.at<cv::Vec3b>(0, 0)[1], 255);
  }
  EXPECT_NEAR(least, -0.159, 0.01);
  EXPECT_NEAR(most, 0.159, 0.01);
}

TEST(Augment, ColoursAreSharedExceptWithProbability) {
  Sample input = make_sample(40, 24, false);
  input.right = input.left.clone();
  AugmentOptions options = small_crop();
  options.eraser = 0;
  int different = 0;
  const int runs = 400;
  for (std::uint64_t seed = 0; seed < runs; ++seed) {
    Rng rng(seed);
    Sample out = augment(input, options, rng);
    different += apart(out.left, out.right) > 0;
  }
  EXPECT_NEAR(different, 0.2 * runs, 32) << "four standard deviations";
  options.eraser = 0.5;
  options.asymmetric = 0;
  int erased = 0;
  for (std::uint64_t seed = 0; seed < runs; ++seed) {
    Rng rng(seed);
    Sample out = augment(input, options, rng);
    erased += apart(out.left, out.right) > 0;
  }
  EXPECT_NEAR(erased, 0.5 * runs, 40);
}

TEST(Augment, EnlargesOnlyUpToADisparity) {
  AugmentOptions options = small_crop();
  options.crop_width = options.crop_height = 0;
  options.dense.scale_high = 1;
  Sample input = make_sample(40, 24, false);
  auto widest = [&](double limit, float disparity) {
    options.scale_disp = limit;
    input.disparity.setTo(disparity);
    input.disparity.at<float>(0, 0) = kInf;    // not known
    input.disparity.at<float>(1, 1) = 1000.f;  // less than 2 % of the pixels
    int most = 0;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      Rng rng(seed);
      const int width = augment(input, options, rng).left.cols;
      EXPECT_GE(width, 40);
      most = std::max(most, width);
    }
    return most;
  };
  EXPECT_NEAR(widest(0, 10), 80, 2) << "no limit";
  EXPECT_NEAR(widest(15, 10), 60, 2);
  EXPECT_NEAR(widest(100, 10), 80, 2) << "scale_high";
  EXPECT_EQ(widest(10, 15), 40) << "never made smaller for it";
  input.disparity.release();
  Rng rng(1);
  augment(input, options, rng);  // pairs without truth
}

TEST(AugmentOptionsTest, FieldsAndChecks) {
  AugmentOptions options;
  options.validate();
  set_field(options, "sparse.scale_high=0.5");
  set_field(options, "dense.hue=0.1");
  EXPECT_EQ(options.sparse.scale_high, 0.5);
  EXPECT_EQ(options.dense.hue, 0.1);
  AugmentOptions copy;
  from_json_object(copy, to_json_object(options), "test");
  EXPECT_EQ(copy.sparse.scale_high, 0.5);
  auto refuse = [](const char* assignment) {
    AugmentOptions bad;
    set_field(bad, assignment);
    return test::error_of(ErrorKind::kUsage, [&] { bad.validate(); });
  };
  EXPECT_TRUE(test::contains(refuse("crop_width=-1"), "crop_width"));
  EXPECT_TRUE(test::contains(refuse("sparse.scale_low=1"), "sparse.scale_low"));
  EXPECT_TRUE(test::contains(refuse("eraser=1.5"), "eraser"));
  EXPECT_TRUE(test::contains(refuse("scale_disp=-1"), "scale_disp"));
  EXPECT_TRUE(test::contains(refuse("eraser_low=200"), "eraser_low"));
  EXPECT_TRUE(test::contains(refuse("dense.brightness=2"), "dense.brightness"));
}

}  // namespace
}  // namespace nmrf
