// The library's front door.
#include "nmrf/matcher.h"

#include <gtest/gtest.h>

#include <opencv2/imgproc.hpp>
#include <thread>

#include "model/formula.h"
#include "model/golden.h"
#include "model/weights.h"
#include "support/support.h"

namespace nmrf {
namespace {

const Matcher& matcher() {
  static Matcher instance = Matcher::load("formula:fast", {.device = "cpu", .max_disp = 64});
  return instance;
}

cv::Mat random_image(int height, int width, int type, unsigned seed) {
  cv::Mat image(height, width, type);
  cv::RNG rng(seed);
  rng.fill(image, cv::RNG::UNIFORM, 0, CV_MAT_DEPTH(type) == CV_8U ? 256 : 65536);
  return image;
}

bool same(const cv::Mat& a, const cv::Mat& b) {
  return a.size() == b.size() && cv::countNonZero(a != b) == 0;
}

TEST(Matcher, MapsHaveTheSizeOfTheImages) {
  for (auto [h, w] : std::vector<std::pair<int, int>>{{32, 32}, {37, 61}, {64, 96}}) {
    Disparity d = matcher().match(random_image(h, w, CV_8UC3, 1), random_image(h, w, CV_8UC3, 2));
    EXPECT_EQ(d.map.size(), cv::Size(w, h));
    EXPECT_EQ(d.confidence.size(), cv::Size(w, h));
    double lo, hi;
    cv::minMaxLoc(d.map, &lo, &hi);
    EXPECT_GE(lo, 0);
    EXPECT_TRUE(std::isfinite(hi));
    cv::minMaxLoc(d.confidence, &lo, &hi);
    EXPECT_GE(lo, 0.25 - 1e-6) << "the winner of four labels has at least a quarter";
    EXPECT_LE(hi, 1 + 1e-6);
  }
}

TEST(Matcher, EqualsTheNetwork) {
  torch::NoGradGuard no_grad;
  cv::Mat left = random_image(40, 64, CV_8UC3, 3), right = random_image(40, 64, CV_8UC3, 4);
  Disparity ours = matcher().match(left, right);
  auto tensor = [](const cv::Mat& bgr) {  // by hand, so that a swapped channel would show
    auto t = torch::empty({1, 3, bgr.rows, bgr.cols});
    for (int c = 0; c < 3; ++c)
      for (int y = 0; y < bgr.rows; ++y)
        for (int x = 0; x < bgr.cols; ++x)
          t[0][c][y][x] = static_cast<float>(bgr.at<cv::Vec3b>(y, x)[2 - c]);
    return t;
  };
  Network network = load_model("formula:fast").network;
  network->set_max_disp(64);
  auto theirs = network->forward(tensor(left), tensor(right)).disparity.contiguous();
  EXPECT_TRUE(same(ours.map, cv::Mat(40, 64, CV_32F, theirs.data_ptr())));
}

TEST(Matcher, AcceptsWhatCamerasDeliver) {
  cv::Mat grey = random_image(32, 48, CV_8UC1, 5), grey2 = random_image(32, 48, CV_8UC1, 6);
  cv::Mat colour, colour2, alpha, deep;
  cv::cvtColor(grey, colour, cv::COLOR_GRAY2BGR);
  cv::cvtColor(grey2, colour2, cv::COLOR_GRAY2BGR);
  cv::cvtColor(colour, alpha, cv::COLOR_BGR2BGRA);
  grey.convertTo(deep, CV_16U, 257);
  cv::Mat expected = matcher().match(colour, colour2).map;
  EXPECT_TRUE(same(matcher().match(grey, grey2).map, expected));
  EXPECT_TRUE(same(matcher().match(alpha, grey2).map, expected));
  EXPECT_TRUE(same(matcher().match(deep, grey2).map, expected));
}

TEST(Matcher, RightViewIsTheMirroredProblem) {
  cv::Mat left = random_image(32, 64, CV_8UC3, 7), right = random_image(32, 64, CV_8UC3, 8);
  cv::Mat mirrored_left, mirrored_right, expected;
  cv::flip(left, mirrored_left, 1);
  cv::flip(right, mirrored_right, 1);
  cv::flip(matcher().match(mirrored_right, mirrored_left).map, expected, 1);
  EXPECT_TRUE(same(matcher().match(left, right, {.view = View::kRight}).map, expected));
}

TEST(Matcher, ScaleScalesSizeAndDisparity) {
  cv::Mat left = random_image(80, 128, CV_8UC3, 9), right = random_image(80, 128, CV_8UC3, 10);
  Disparity half = matcher().match(left, right, {.scale = 0.5});
  EXPECT_EQ(half.map.size(), cv::Size(64, 40));
  Disparity full = matcher().match(left, right, {.scale = 0.5, .full_size = true});
  EXPECT_EQ(full.map.size(), cv::Size(128, 80));
  EXPECT_FLOAT_EQ(full.map.at<float>(20, 20), 2 * half.map.at<float>(10, 10));
}

TEST(Matcher, BadInputIsNamed) {
  cv::Mat image = random_image(40, 40, CV_8UC3, 1);
  EXPECT_NE(test::error_of(ErrorKind::kInput,
                           [&] { matcher().match(image, random_image(40, 48, CV_8UC3, 1)); })
                .find("48x40"),
            std::string::npos);
  EXPECT_NE(test::error_of(ErrorKind::kInput,
                           [&] {
                             auto small = random_image(31, 40, CV_8UC3, 1);
                             matcher().match(small, small);
                           })
                .find("32x32"),
            std::string::npos);
  test::error_of(ErrorKind::kInput, [&] { matcher().match(cv::Mat(), cv::Mat()); });
  test::error_of(ErrorKind::kInput, [&] {
    cv::Mat floats(40, 40, CV_32FC3, cv::Scalar::all(1));
    matcher().match(floats, floats);
  });
  test::error_of(ErrorKind::kUsage, [&] { matcher().match(image, image, {.scale = 0}); });
  test::error_of(ErrorKind::kUsage, [] { Matcher::load("formula:fast", {.device = "tpu"}); });
  test::error_of(ErrorKind::kUsage, [] { Matcher::load("formula:fast", {.max_disp = -8}); });
  test::error_of(ErrorKind::kUsage, [] { Matcher::load("formula:none"); });
  if (!torch::cuda::is_available())
    test::error_of(ErrorKind::kDevice, [] { Matcher::load("formula:fast", {.device = "cuda"}); });
}

TEST(Matcher, ManyThreadsAtOnce) {
  cv::Mat left = random_image(40, 64, CV_8UC3, 11), right = random_image(40, 64, CV_8UC3, 12);
  cv::Mat expected = matcher().match(left, right).map;
  std::vector<cv::Mat> results(4);
  std::vector<std::thread> workers;
  for (auto& result : results)
    workers.emplace_back([&] { result = matcher().match(left, right).map; });
  for (auto& worker : workers) worker.join();
  for (const auto& result : results) {
    ASSERT_EQ(result.size(), expected.size());
    EXPECT_LT(cv::norm(result, expected, cv::NORM_INF), 1e-2);
  }
}

TEST(OcclusionMask, MarksDisagreementAndOutOfView) {
  cv::Mat left(1, 6, CV_32F, cv::Scalar(2)), right(1, 6, CV_32F, cv::Scalar(2));
  right.at<float>(0, 2) = 5;  // the pixel that left 4 looks at
  cv::Mat mask = occlusion_mask(left, right, View::kLeft, 1);
  EXPECT_EQ(mask.at<uchar>(0, 0), 255);
  EXPECT_EQ(mask.at<uchar>(0, 1), 255);
  EXPECT_EQ(mask.at<uchar>(0, 2), 0);
  EXPECT_EQ(mask.at<uchar>(0, 4), 255);
  EXPECT_EQ(mask.at<uchar>(0, 5), 0);
  cv::Mat other = occlusion_mask(right, left, View::kRight, 1);
  EXPECT_EQ(other.at<uchar>(0, 0), 0);
  EXPECT_EQ(other.at<uchar>(0, 5), 255);
}

}  // namespace
}  // namespace nmrf
