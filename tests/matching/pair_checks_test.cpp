#include "data/pair_checks.h"

#include <opencv2/imgproc.hpp>

#include "data/trees.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::contains;

// A pair of a slanted plane with random texture: disparity grows from top to bottom.
void make_pair(int width, int height, double near, cv::Mat& left, cv::Mat& right) {
  cv::Mat texture = test::noise_image(width / 3 + 60, height / 3 + 2, 21), large;
  cv::resize(texture, large, {}, 3, 3, cv::INTER_CUBIC);
  cv::Mat map_x(height, width, CV_32FC1), map_y(height, width, CV_32FC1);
  for (int side = 0; side < 2; ++side) {
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) {
        double disparity = near * (0.2 + 0.8 * y / height);
        map_x.at<float>(y, x) = static_cast<float>(x + (side ? disparity : 0));
        map_y.at<float>(y, x) = static_cast<float>(y);
      }
    cv::remap(large, side ? right : left, map_x, map_y, cv::INTER_LINEAR);
  }
}

cv::Mat moved(const cv::Mat& image, double down) {
  cv::Mat matrix = (cv::Mat_<double>(2, 3) << 1, 0, 0, 0, 1, down), out;
  cv::warpAffine(image, out, matrix, image.size(), cv::INTER_LINEAR, cv::BORDER_REPLICATE);
  return out;
}

cv::Mat turned(const cv::Mat& image, double degrees) {
  cv::Point2f middle(image.cols / 2.0f, image.rows / 2.0f);
  cv::Mat matrix = cv::getRotationMatrix2D(middle, degrees, 1), out;
  cv::warpAffine(image, out, matrix, image.size(), cv::INTER_LINEAR, cv::BORDER_REPLICATE);
  return out;
}

TEST(PairCheck, GoodPairIsSilent) {
  cv::Mat left, right;
  make_pair(640, 400, 30, left, right);
  PairCheck check = check_pair(left, right);
  EXPECT_TRUE(check.conclusive);
  EXPECT_TRUE(check.warnings.empty());
  EXPECT_NEAR(check.vertical_rms, 0, 0.3);
  EXPECT_NEAR(check.horizontal, 18, 6);
  EXPECT_LT(check.negative_share, 0.05);
}

TEST(PairCheck, SwappedPair) {
  cv::Mat left, right;
  make_pair(640, 400, 30, left, right);
  PairCheck check = check_pair(right, left);
  EXPECT_TRUE(check.swapped);
  EXPECT_FALSE(check.not_rectified);
  ASSERT_EQ(check.warnings.size(), 1u);
  EXPECT_TRUE(contains(check.warnings[0], "swapped"));
}

TEST(PairCheck, OffsetTurnAndScale) {
  cv::Mat left, right, grey_left, grey_right;
  make_pair(640, 400, 30, left, right);
  for (double down : {-8.0, -3.0, 3.0, 25.0}) {
    PairCheck check = check_pair(left, moved(right, down));
    EXPECT_TRUE(check.not_rectified) << down;
    EXPECT_FALSE(check.swapped) << down;
    EXPECT_NEAR(check.vertical, -down, 0.6);
    ASSERT_EQ(check.warnings.size(), 1u);
    EXPECT_TRUE(contains(check.warnings[0], "rectif"));
  }
  for (double degrees : {-1.0, 1.0})
    EXPECT_TRUE(check_pair(left, turned(right, degrees)).not_rectified);
  cv::cvtColor(left, grey_left, cv::COLOR_BGR2GRAY);
  cv::cvtColor(moved(right, 4), grey_right, cv::COLOR_BGR2GRAY);
  EXPECT_TRUE(check_pair(grey_left, grey_right).not_rectified) << "grey images";
}

TEST(PairCheck, LargeImagesAreMeasuredInTheirOwnPixels) {
  cv::Mat left, right;
  make_pair(2400, 900, 100, left, right);
  PairCheck check = check_pair(left, moved(right, 4));
  EXPECT_TRUE(check.not_rectified);
  EXPECT_NEAR(check.vertical_rms, 4, 0.7);
  EXPECT_TRUE(check_pair(left, right).warnings.empty());
}

TEST(PairCheck, SaysNothingWithoutEvidence) {
  cv::Mat flat(300, 400, CV_8UC3, cv::Scalar::all(90)), left, right;
  EXPECT_FALSE(check_pair(flat, flat).conclusive);
  make_pair(640, 400, 30, left, right);
  cv::Mat other = test::noise_image(640, 400, 77);
  EXPECT_TRUE(check_pair(left, other).warnings.empty()) << "two unrelated pictures";
  PairCheck same = check_pair(left, left);
  EXPECT_TRUE(same.warnings.empty()) << "no motion, no order";
  cv::Mat tiny = test::noise_image(12, 9, 1);
  EXPECT_FALSE(check_pair(tiny, tiny).conclusive);
  test::error_of(ErrorKind::kUsage, [&] { check_pair(left, tiny); });
  test::error_of(ErrorKind::kUsage, [&] { check_pair(cv::Mat(), cv::Mat()); });
}

TEST(PairCheck, RealPairs) {
  NMRF_NEED_SHARED("data/pairs.txt");
  DatasetOptions options;
  options.name = "list";
  options.list = (test::shared_folder() / "data/pairs.txt").string();
  auto dataset = open_dataset(options);
  for (std::size_t i = 0; i < dataset->size(); ++i) {
    Sample sample = dataset->load(i);
    PairCheck good = check_pair(sample.left, sample.right);
    EXPECT_TRUE(good.warnings.empty()) << sample.name << ": " << good.warnings[0];
    // The wrong ways in turn, to keep the test short.
    switch (i % 4) {
      case 0:
        EXPECT_TRUE(check_pair(sample.right, sample.left).swapped) << sample.name;
        break;
      case 1:
        EXPECT_TRUE(check_pair(sample.left, moved(sample.right, 3)).not_rectified) << sample.name;
        break;
      case 2:
        EXPECT_TRUE(check_pair(sample.left, moved(sample.right, -3)).not_rectified) << sample.name;
        break;
      default:
        EXPECT_TRUE(check_pair(sample.left, turned(sample.right, 1)).not_rectified) << sample.name;
    }
  }
}

}  // namespace
}  // namespace nmrf
