// The library's front door.
#include "nmrf/matcher.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <opencv2/imgproc.hpp>
#include <set>
#include <thread>

#include "network/formula.h"
#include "train/model/golden.h"
#include "train/model/weights.h"
#include "support/mats.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::mirrored;
using test::same;

const Matcher& matcher() {
  static Matcher instance =
      Matcher::load("formula:fast", {.device = "cpu",
                                     .max_disp = 64,
                                     .set = {"match.enlarge=0", "match.fill=0", "match.median=0"}});
  return instance;
}

cv::Mat random_image(int height, int width, int type, unsigned seed) {
  cv::Mat image(height, width, type);
  cv::RNG rng(seed);
  rng.fill(image, cv::RNG::UNIFORM, 0, CV_MAT_DEPTH(type) == CV_8U ? 256 : 65536);
  return image;
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
  const cv::Mat expected = mirrored(matcher().match(mirrored(right), mirrored(left)).map);
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

// The model's choice: as the images are, and again enlarged as far as their disparities allow.
TEST(Matcher, EnlargesWhereDisparitiesAreSmall) {
  cv::Mat wide, coarse = random_image(24, 40, CV_8UC3, 11);
  cv::resize(coarse, wide, {}, 4, 4, cv::INTER_CUBIC);
  const int shift = 8;  // pixels of disparity
  const cv::Mat left = wide.colRange(0, wide.cols - shift), right = wide.colRange(shift, wide.cols);
  auto load = [](int enlarge) {
    return Matcher::load(NMRF_SOURCE_DIR "/models/nmrf-fast.safetensors",
                         {.device = "cpu",
                          .set = {fmt::format("match.enlarge={}", enlarge), "match.guide=false",
                                  "match.fill=0", "match.median=0"}});
  };
  Matcher never = load(0);
  const Disparity plain = never.match(left, right, {.scale = 1});
  EXPECT_TRUE(same(never.match(left, right).map, plain.map));
  std::vector<float> values(plain.map.begin<float>(), plain.map.end<float>());
  std::sort(values.begin(), values.end());
  const double near = values[static_cast<std::size_t>(0.98 * static_cast<double>(values.size()))];
  ASSERT_GT(near, 5);
  ASSERT_LT(near, 60);
  // Less than 1.2 times is not worth another pass, more than twice is not done.
  for (const auto& [times, scale] : std::vector<std::pair<double, double>>{{1.1, 1}, {3, 2}}) {
    SCOPED_TRACE(times);
    Matcher matcher = load(static_cast<int>(times * near));
    const Disparity chosen = matcher.match(left, right);
    EXPECT_EQ(chosen.map.size(), left.size());
    const Disparity expected = never.match(left, right, {.scale = scale, .full_size = true});
    EXPECT_TRUE(same(chosen.map, expected.map));
    EXPECT_TRUE(same(chosen.confidence, expected.confidence));
    EXPECT_EQ(matcher.best_scale(plain.map), scale);
    const MatchOptions other{.view = View::kRight, .scale = scale, .full_size = true};
    EXPECT_TRUE(same(matcher.match(left, right, {.view = View::kRight}).map,
                     never.match(left, right, other).map));
    // Labels stay those of the images as they are.
    EXPECT_EQ(matcher.match(left, right, {.keep_labels = true}).labels.size(), cv::Size(19, 12));
  }
  // In between, as far as the disparities stay below the limit.
  const int limit = static_cast<int>(1.5 * near);
  const Disparity some = load(limit).match(left, right);
  const Disparity expected = never.match(left, right, {.scale = limit / near, .full_size = true});
  EXPECT_LT(cv::mean(cv::abs(some.map - expected.map))[0], 0.1);
  EXPECT_FALSE(same(some.map, plain.map));
}

// The maps of smaller images guide larger ones: half the images the whole, the whole the enlarged.
TEST(Matcher, SmallerImagesGuideLargerOnes) {
  torch::NoGradGuard no_grad;
  const std::string model = NMRF_SOURCE_DIR "/models/nmrf-fast.safetensors";
  cv::Mat left, wide;
  cv::resize(random_image(25, 40, CV_8UC3, 31), wide, {}, 4, 4, cv::INTER_CUBIC);
  left = wide.colRange(0, 147).clone();
  const cv::Mat right = wide.colRange(8, 155).clone();
  const auto loaded = [&](const char* guide, int enlarge) {
    return Matcher::load(model, {.device = "cpu",
                                 .set = {guide, fmt::format("match.enlarge={}", enlarge),
                                         "match.fill=0", "match.median=0"}});
  };
  Network network = load_model(model, {"match.guide=true"}).network;
  const auto tensor = [](const cv::Mat& bgr) {
    cv::Mat rgb;
    cv::cvtColor(bgr, rgb, cv::COLOR_BGR2RGB);
    auto whole = torch::from_blob(rgb.data, {1, rgb.rows, rgb.cols, 3}, torch::kByte);
    return pad_images(whole.permute({0, 3, 1, 2}).to(torch::kFloat));
  };
  const auto map_of = [&](const cv::Mat& a, const cv::Mat& b, const torch::Tensor& guide) {
    ForwardOptions how;
    how.guide = guide;
    auto map = network->forward(tensor(a), tensor(b), how).disparity[0];
    map = map.narrow(0, 0, a.rows).narrow(1, 0, a.cols).contiguous();
    return cv::Mat(a.rows, a.cols, CV_32F, map.data_ptr()).clone();
  };
  const cv::Mat first = map_of(left, right, half_size_map(network, tensor(left), tensor(right)));
  EXPECT_TRUE(same(loaded("match.guide=true", 0).match(left, right).map, first));
  EXPECT_FALSE(same(loaded("match.guide=false", 0).match(left, right).map, first));

  cv::Mat twice_left, twice_right, grown;
  cv::resize(left, twice_left, {}, 2, 2, cv::INTER_CUBIC);
  cv::resize(right, twice_right, {}, 2, 2, cv::INTER_CUBIC);
  cv::resize(2 * first, grown, {}, 2, 2, cv::INTER_NEAREST);
  auto guide = torch::from_blob(grown.data, {1, 1, grown.rows, grown.cols}).clone();
  cv::Mat second = map_of(twice_left, twice_right, pad_images(guide)[0]);
  cv::resize(second, second, left.size(), 0, 0, cv::INTER_NEAREST);
  EXPECT_TRUE(same(loaded("match.guide=true", 16384).match(left, right).map, second / 2));
}

TEST(Matcher, ChoosesAScaleFromAMap) {
  Matcher matcher = Matcher::load("formula:fast", {.device = "cpu", .set = {"match.enlarge=128"}});
  cv::Mat map(100, 100, CV_32FC1, cv::Scalar(80));
  EXPECT_DOUBLE_EQ(matcher.best_scale(map), 1.6);
  EXPECT_DOUBLE_EQ(matcher.best_scale(map, 1.5), 1.5) << "close enough to stay";
  EXPECT_DOUBLE_EQ(matcher.best_scale(map, 1), 1.6);
  map.row(0).setTo(500);  // few
  map.row(1).setTo(kInvalidDisparity);
  EXPECT_DOUBLE_EQ(matcher.best_scale(map), 1.6);
  map.setTo(120);
  EXPECT_EQ(matcher.best_scale(map), 1) << "1.07 is not worth it";
  map.setTo(kInvalidDisparity);
  EXPECT_EQ(matcher.best_scale(map), 2) << "nothing is known to speak against it";
  EXPECT_DOUBLE_EQ(matcher.best_scale(cv::Mat(2000, 4000, CV_32FC1, cv::Scalar(10))), 0.5);
  test::error_of(ErrorKind::kUsage, [&] { matcher.best_scale(cv::Mat()); });
  test::error_of(ErrorKind::kUsage, [&] { matcher.best_scale(cv::Mat(9, 9, CV_8UC1)); });
}

// Of large photographs as many pixels as time and memory allow; the map has all of them.
TEST(Matcher, ShrinksLargeImages) {
  cv::Mat left, right;
  cv::resize(random_image(60, 160, CV_8UC3, 21), left, {2400, 900}, 0, 0, cv::INTER_CUBIC);
  cv::resize(random_image(60, 160, CV_8UC3, 22), right, {2400, 900}, 0, 0, cv::INTER_CUBIC);
  Matcher shrinks =
      Matcher::load("formula:fast", {.device = "cpu",
                                     .max_disp = 64,
                                     .set = {"match.enlarge=1", "match.fill=0", "match.median=0"}});
  const double scale = std::sqrt(2e6 / (2400 * 900));
  const Disparity expected = matcher().match(left, right, {.scale = scale, .full_size = true});
  EXPECT_TRUE(same(shrinks.match(left, right).map, expected.map));
  EXPECT_EQ(expected.map.size(), left.size());
  EXPECT_EQ(shrinks.match(left, right, {.keep_labels = true}).labels.size(), cv::Size(300, 113));
}

TEST(Matcher, KeepsLabelsAndSeeds) {
  Matcher matcher = Matcher::load(
      "formula:fast", {.device = "cpu",
                       .max_disp = 64,
                       .set = {"match.enlarge=0", "match.guide=false", "seeds.fill=false"}});
  cv::Mat left = random_image(37, 61, CV_8UC3, 5), right = random_image(37, 61, CV_8UC3, 6);
  Disparity plain = matcher.match(left, right);
  EXPECT_TRUE(plain.labels.empty() && plain.seeds.empty());
  Disparity kept = matcher.match(left, right, {.keep_labels = true});
  EXPECT_TRUE(same(kept.map, plain.map));
  const int k = preset_options("fast").labels;
  for (const cv::Mat* cells : {&kept.labels, &kept.seeds}) {
    EXPECT_EQ(cells->size(), cv::Size(8, 5));  // of the image padded to multiples of 8
    EXPECT_EQ(cells->type(), CV_32FC(k));
  }
  // Seeds are planes of 8 px below the limit; no pixel has one twice.
  for (int y = 0; y < 5; ++y)
    for (int x = 0; x < 8; ++x) {
      const float* seed = kept.seeds.ptr<float>(y) + x * k;
      std::set<float> distinct(seed, seed + k);
      EXPECT_EQ(distinct.size(), static_cast<std::size_t>(k));
      for (float s : distinct) {
        EXPECT_EQ(s, 8 * std::floor(s / 8));
        EXPECT_GE(s, 0);
        EXPECT_LT(s, 64);
      }
    }
  test::error_of(ErrorKind::kUsage,
                 [&] { matcher.match(left, right, {.view = View::kRight, .keep_labels = true}); });
}

TEST(Matcher, OptionsCanBeChanged) {
  cv::Mat left = random_image(40, 64, CV_8UC3, 5), right = random_image(40, 64, CV_8UC3, 6);
  Matcher two =
      Matcher::load("formula:fast", {.device = "cpu", .max_disp = 64, .set = {"seeds.labels=2"}});
  Disparity d = two.match(left, right, {.keep_labels = true});
  EXPECT_EQ(d.labels.channels(), 2);
  EXPECT_FALSE(same(d.map, matcher().match(left, right).map));
  test::error_of(ErrorKind::kUsage, [] {
    Matcher::load("formula:fast", {.device = "cpu", .set = {"seeds.label=2"}});
  });
}

TEST(Matcher, ChangesThatNeedOtherWeightsAreRefused) {
  test::TempFolder folder;
  const std::string file = (folder / "model.safetensors").string();
  save_model(file, load_model("formula:fast").network);
  EXPECT_EQ(load_model(file, {"seeds.labels=3"}).network->options().labels, 3);
  EXPECT_EQ(load_model(file, {"refinement.count=0"}).network->options().refinements, 0);
  load_model(file, {"inference.self_edges=none"});
  const std::string message = test::error_of(
      ErrorKind::kModel, [&] { load_model(file, {"inference.adaptive_bias=false"}); });
  EXPECT_NE(message.find("weights of its own"), std::string::npos) << message;
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
  test::error_of(ErrorKind::kUsage, [&] { matcher().match(image, image, {.scale = -1}); });
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
