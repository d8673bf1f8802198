// The readers on real files, where these are at hand.
#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>

#include "data/dataset.h"
#include "data/trees.h"
#include "support/support.h"

namespace nmrf {
namespace {

struct Expected {
  const char* name;
  const char* root;
  const char* split;
  const char* size;
  std::size_t pairs;
};

// Share of known pixels and the largest known disparity.
std::pair<double, double> summary(const cv::Mat& disparity) {
  double largest = 0;
  int known = 0;
  for (int y = 0; y < disparity.rows; ++y)
    for (int x = 0; x < disparity.cols; ++x)
      if (float d = disparity.at<float>(y, x); std::isfinite(d)) {
        ++known;
        largest = std::max<double>(largest, d);
      }
  return {static_cast<double>(known) / static_cast<double>(disparity.total()), largest};
}

TEST(RealData, ListsAndTruth) {
  NMRF_NEED_SHARED("data/pairs.txt");
  auto data = test::shared_folder() / "data";
  const Expected all[] = {{"kitti2015", "KITTI", "", "", 26},
                          {"kitti2015", "KITTI", "val", "", 6},
                          {"kitti2015", "KITTI/KITTI_2015", "train", "", 20},
                          {"kitti2012", "KITTI", "", "", 1},
                          {"kitti-mix", "KITTI", "", "", 27},
                          {"kitti-mix", "", "", "", 27},
                          {"middlebury-2005", "Middlebury", "", "", 3},
                          {"middlebury-2005", "", "", "full", 1},
                          {"middlebury-2006", "Middlebury", "", "", 10},
                          {"middlebury-2003", "Middlebury", "", "", 2},
                          {"middlebury-q", "Middlebury", "", "", 1},
                          {"eth3d", "", "", "", 1},
                          {"sceneflow", "", "", "", 1},
                          {"sceneflow", "SceneFlow", "test", "", 1},
                          {"flyingthings3d", "SceneFlow", "all", "", 2}};
  for (const auto& expected : all) {
    auto options = test::options_of(expected.name, data / expected.root, expected.split);
    options.size = expected.size;
    auto dataset = open_dataset(options);
    EXPECT_EQ(dataset->size(), expected.pairs) << expected.name << " " << expected.split;
    Sample sample = dataset->load(0);
    auto [known, largest] = summary(sample.disparity);
    EXPECT_GT(known, 0.1) << sample.name;
    EXPECT_GT(largest, 5) << sample.name;
    EXPECT_LT(largest, sample.left.cols / 2) << sample.name;
  }
}

// Warps the right image to the left by the truth: it must fit far better than without, or than with
// the disparity scaled by a wrong divisor.
double fit(const Sample& sample, double factor) {
  double sum = 0;
  int count = 0;
  for (int y = 0; y < sample.left.rows; y += 2)
    for (int x = 0; x < sample.left.cols; x += 2) {
      float d = sample.disparity.at<float>(y, x);
      int to = static_cast<int>(std::lround(x - factor * d));
      if (!std::isfinite(d) || to < 0 || to >= sample.left.cols) continue;
      auto a = sample.left.at<cv::Vec3b>(y, x), b = sample.right.at<cv::Vec3b>(y, to);
      for (int c = 0; c < 3; ++c) sum += std::min(std::abs(a[c] - b[c]), 40);
      ++count;
    }
  return sum / std::max(count, 1);
}

TEST(RealData, DisparitiesFitTheImages) {
  NMRF_NEED_SHARED("data/pairs.txt");
  auto data = test::shared_folder() / "data";
  for (const char* name : {"kitti2012", "kitti2015", "middlebury-2003", "middlebury-2005",
                           "middlebury-2006", "middlebury-q", "eth3d", "sceneflow"}) {
    auto dataset = open_dataset(test::options_of(name, data));
    for (std::size_t i = 0; i < dataset->size(); i += 5) {
      Sample sample = dataset->load(i);
      double right = fit(sample, 1);
      for (double wrong : {0.0, 0.5, 2.0})
        EXPECT_LT(right, 0.9 * fit(sample, wrong)) << name << " " << sample.name << " x" << wrong;
    }
  }
}

TEST(RealData, PairsListEqualsTheReaders) {
  NMRF_NEED_SHARED("data/pairs.txt");
  auto data = test::shared_folder() / "data";
  DatasetOptions options;
  options.name = "list";
  options.list = (data / "pairs.txt").string();
  auto list = open_dataset(options);
  ASSERT_EQ(list->size(), 47u);
  for (auto [name, size] : {std::pair{"middlebury-2006", ""},
                            {"middlebury-2005", "full"},
                            {"middlebury-2003", ""},
                            {"eth3d", ""},
                            {"middlebury-q", ""}}) {
    auto reader_options = test::options_of(name, data);
    reader_options.size = size;
    auto reader = open_dataset(reader_options);
    const SampleRef& ref = reader->ref(0);
    auto same = std::find_if(list->refs().begin(), list->refs().end(), [&](const SampleRef& other) {
      return other.left.lexically_normal() == ref.left.lexically_normal();
    });
    ASSERT_NE(same, list->refs().end()) << name;
    cv::Mat a = load_sample(ref).disparity, b = load_sample(*same).disparity;
    EXPECT_EQ(cv::countNonZero(a != b), 0) << name;
  }
}

TEST(RealData, NocMasks) {
  NMRF_NEED_SHARED("data/Middlebury/2003/cones");
  auto data = test::shared_folder() / "data";
  for (const char* name : {"middlebury-2003", "middlebury-q"}) {
    Sample sample = open_dataset(test::options_of(name, data))->load(0);
    double share = static_cast<double>(cv::countNonZero(sample.noc_mask)) /
                   static_cast<double>(sample.noc_mask.total());
    EXPECT_GT(share, 0.5) << name;
    EXPECT_LT(share, 0.97) << name;
  }
  // Pair 1 has both truths, pair 0 the one with occluded pixels only, pair 5 the other only.
  auto kitti = open_dataset(test::options_of("kitti2015", data));
  EXPECT_TRUE(kitti->load(0).noc_mask.empty());
  Sample both = kitti->load(1);
  int known = cv::countNonZero(both.disparity < 1e9f), seen = cv::countNonZero(both.noc_mask);
  EXPECT_LT(seen, known);
  EXPECT_GT(seen, known / 2);
  Sample noc = kitti->load(5);
  EXPECT_EQ(cv::countNonZero(noc.noc_mask), cv::countNonZero(noc.disparity < 1e9f));
}

}  // namespace
}  // namespace nmrf
