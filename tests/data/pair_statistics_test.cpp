#include "data/pair_statistics.h"

#include <limits>
#include <opencv2/imgproc.hpp>

#include "data/trees.h"
#include "support/support.h"

namespace nmrf {
namespace {

// Grey 120 with Gaussian noise of that deviation, on the left half of a 320 x 160 image.
cv::Mat half_noisy(double deviation) {
  cv::Mat image(160, 320, CV_8UC3, cv::Scalar::all(120));
  cv::RNG rng(5);
  for (int y = 0; y < image.rows; ++y)
    for (int x = 0; x < image.cols / 2; ++x) {
      const auto v = cv::saturate_cast<std::uint8_t>(120 + rng.gaussian(deviation));
      image.at<cv::Vec3b>(y, x) = {v, v, v};
    }
  return image;
}

TEST(PairStatistics, DisparitiesAreSharesOfTheWidthAndUnknownOnesDoNotCount) {
  cv::Mat disparity(100, 200, CV_32FC1, cv::Scalar(20));
  disparity.colRange(100, 200).setTo(std::numeric_limits<float>::infinity());
  disparity.rowRange(0, 10).setTo(4);
  const PairStatistics s = pair_statistics(test::noise_image(200, 100, 3), disparity);
  EXPECT_NEAR(s.near, 10, 1e-4);
  EXPECT_NEAR(s.middle, 10, 1e-4);
  EXPECT_NEAR(s.far, 2, 1e-4);
  // Of 11,000 known pixels 90 rows have 20 columns outside and 10 rows 4.
  EXPECT_NEAR(s.outside, 100.0 * (90 * 20 + 10 * 4) / 11000, 1e-4);
}

TEST(PairStatistics, KnowsPlainAndNoisySurfaces) {
  const PairStatistics flat = pair_statistics(half_noisy(0), {});
  EXPECT_NEAR(flat.plain, 100, 1e-6);
  EXPECT_EQ(flat.noise, 0);
  EXPECT_EQ(flat.near, 0);
  const PairStatistics half = pair_statistics(half_noisy(20), {});
  EXPECT_NEAR(half.plain, 49, 3);
  EXPECT_EQ(half.noise, 0);  // the quiet half is quiet
  cv::Mat noisy = half_noisy(6);
  noisy.colRange(0, 160).copyTo(noisy.colRange(160, 320));
  const PairStatistics all = pair_statistics(noisy, {});
  EXPECT_NEAR(all.noise, 5.5, 0.6);  // the lower end of the blocks' estimates
  EXPECT_NEAR(all.contrast, 6, 0.5);
  // Shading is no noise.
  for (int x = 0; x < noisy.cols; ++x) noisy.col(x).setTo(cv::Scalar::all(40 + x / 2));
  EXPECT_LT(pair_statistics(noisy, {}).noise, 0.4);
}

TEST(PairStatistics, CountsWhiteAndBlack) {
  cv::Mat image(64, 100, CV_8UC3, cv::Scalar::all(100));
  image.colRange(0, 30).setTo(cv::Scalar::all(255));
  image.colRange(90, 100).setTo(cv::Scalar::all(3));
  const PairStatistics s = pair_statistics(image, {});
  EXPECT_NEAR(s.white, 30, 1e-6);
  EXPECT_NEAR(s.black, 10, 1e-6);
}

TEST(PairStatistics, SmallAndWrongInput) {
  const PairStatistics tiny = pair_statistics(test::noise_image(3, 2, 1), {});
  EXPECT_EQ(tiny.noise, 0);
  EXPECT_GT(tiny.contrast, 0);
  const cv::Mat unknown(2, 3, CV_32FC1, cv::Scalar(std::numeric_limits<float>::infinity()));
  EXPECT_EQ(pair_statistics(test::noise_image(3, 2, 1), unknown).near, 0);
  EXPECT_THROW(pair_statistics({}, {}), Error);
  EXPECT_THROW(pair_statistics(test::noise_image(3, 2, 1), cv::Mat(3, 3, CV_32FC1)), Error);
}

}  // namespace
}  // namespace nmrf
