#include "data/modals.h"

#include <cmath>
#include <limits>
#include <map>
#include <opencv2/imgproc.hpp>

#include "data/augment.h"
#include "data/sample_source.h"
#include "data/trees.h"
#include "support/mats.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::same;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

// The same rules, written down again without sorting or sharing code: medians by counting, the
// order by repeated search for the largest.
struct NaiveGroup {
  int id = 0;
  std::vector<double> values;
  bool taken = false;
};

double naive_median(const std::vector<double>& values) {
  for (double candidate : values) {
    std::size_t below = 0, equal = 0;
    for (double value : values) {
      below += value < candidate;
      equal += value == candidate;
    }
    const std::size_t wanted = (values.size() - 1) / 2;
    if (below <= wanted && wanted < below + equal) return candidate;
  }
  return -1;
}

// The largest group not yet taken; of equal ones the first of the list.
NaiveGroup* largest(std::vector<NaiveGroup>& groups) {
  NaiveGroup* best = nullptr;
  for (auto& group : groups)
    if (!group.taken && (!best || group.values.size() > best->values.size())) best = &group;
  return best;
}

std::array<double, 4> naive_modals(const cv::Mat& disparity, const cv::Mat& segments, int x,
                                   int y) {
  std::map<int, std::vector<double>> pixels;
  for (int row = 8 * y; row < 8 * y + 8 && row < disparity.rows; ++row)
    for (int col = 8 * x; col < 8 * x + 8 && col < disparity.cols; ++col) {
      const float value = disparity.at<float>(row, col);
      if (value > 0 && value < kInf) pixels[segments.at<int>(row, col)].push_back(value);
    }
  std::vector<NaiveGroup> groups, merged;
  for (auto& [id, values] : pixels) groups.push_back({id, values, false});
  while (NaiveGroup* leader = largest(groups)) {
    leader->taken = true;
    NaiveGroup whole{leader->id, leader->values, false};
    const double place = naive_median(leader->values);
    for (auto& other : groups) {
      if (other.taken || std::abs(naive_median(other.values) - place) >= 0.5) continue;
      other.taken = true;
      whole.values.insert(whole.values.end(), other.values.begin(), other.values.end());
    }
    merged.push_back(whole);
  }
  std::array<double, 4> modals{kNone, kNone, kNone, kNone};
  for (double& modal : modals)
    if (NaiveGroup* next = largest(merged)) {
      next->taken = true;
      modal = naive_median(next->values);
    }
  return modals;
}

void expect_modals(const cv::Vec4f& got, const std::array<double, 4>& wanted,
                   const std::string& where) {
  for (int i = 0; i < 4; ++i) {
    if (std::isnan(wanted[static_cast<std::size_t>(i)]))
      EXPECT_TRUE(std::isnan(got[i])) << where << ", modal " << i << " is " << got[i];
    else
      EXPECT_EQ(got[i], static_cast<float>(wanted[static_cast<std::size_t>(i)]))
          << where << ", modal " << i;
  }
}

// One cell from a list of (segment, disparity, how often).
struct Patch {
  int id;
  float disparity;
  int count;
};
cv::Vec4f one_cell(const std::vector<Patch>& patches) {
  cv::Mat disparity(8, 8, CV_32FC1, cv::Scalar(kInf)), segments(8, 8, CV_32SC1, cv::Scalar(-7));
  int at = 0;
  for (const Patch& patch : patches)
    for (int i = 0; i < patch.count; ++i, ++at) {
      disparity.at<float>(at / 8, at % 8) = patch.disparity;
      segments.at<int>(at / 8, at % 8) = patch.id;
    }
  EXPECT_LE(at, 64);
  return disparity_modals(disparity, segments).at<cv::Vec4f>(0, 0);
}

TEST(Modals, AgreeWithANaiveComputationOnRandomWindows) {
  Rng rng(5);
  for (int round = 0; round < 60; ++round) {
    const int width = static_cast<int>(rng.integer(1, 45));
    const int height = static_cast<int>(rng.integer(1, 30));
    const auto labels = rng.integer(1, 20);
    const double spread = rng.uniform(0.1, 12), unknown = rng.uniform() * rng.uniform();
    const bool coarse = rng.chance(0.5);  // quarters of pixels: ties and differences of exactly 0.5
    cv::Mat disparity(height, width, CV_32FC1), segments(height, width, CV_32SC1);
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) {
        const auto id = rng.integer(0, labels);
        double value = static_cast<double>(id % 5) * 0.3 * spread + rng.uniform(0, spread);
        if (coarse) value = std::round(4 * value) / 4;  // may be 0, which does not count
        disparity.at<float>(y, x) = rng.chance(unknown) ? kInf : static_cast<float>(value);
        segments.at<int>(y, x) = static_cast<int>(id) * 1000003 - 2000000;
      }
    cv::Mat modals = disparity_modals(disparity, segments);
    ASSERT_EQ(modals.type(), CV_32FC4);
    ASSERT_EQ(modals.size(), cv::Size((width + 7) / 8, (height + 7) / 8));
    ASSERT_TRUE(modals.isContinuous());
    for (int y = 0; y < modals.rows; ++y)
      for (int x = 0; x < modals.cols; ++x)
        expect_modals(modals.at<cv::Vec4f>(y, x), naive_modals(disparity, segments, x, y),
                      fmt::format("round {} cell {} {}", round, x, y));
  }
}

TEST(Modals, LargerSegmentsFirstAndNoMoreThanFour) {
  expect_modals(one_cell({{1, 5, 3}, {2, 9, 20}, {3, 1, 10}, {4, 30, 8}, {5, 50, 9}, {6, 70, 2}}),
                {9, 1, 50, 30}, "six surfaces");
  expect_modals(one_cell({{4, 5, 9}, {2, 8, 9}, {3, 2, 9}}), {8, 2, 5, kNone},
                "equal counts: the lower id first");
  expect_modals(one_cell({}), {kNone, kNone, kNone, kNone}, "nothing known");
  expect_modals(one_cell({{1, 0, 10}, {2, kNone, 3}, {3, 4, 1}}), {4, kNone, kNone, kNone},
                "zero and NaN do not count");
}

TEST(Modals, SuppressedSegmentsJoinTheirSuppressor) {
  // 3 and 4 lie within half a pixel of 2 and make it the largest; its median moves with them.
  expect_modals(one_cell({{1, 20, 14}, {2, 5, 10}, {3, 5.25f, 6}, {4, 5.375f, 5}}),
                {5.25, 20, kNone, kNone}, "merged, sorted again, median anew");
  // Exactly half a pixel apart is not close.
  expect_modals(one_cell({{1, 20, 14}, {2, 20.5f, 10}}), {20, 20.5, kNone, kNone}, "0.5 px");
  // A chain: 2 is suppressed by 1, so it cannot suppress 3, which is 0.7 px from 1.
  expect_modals(one_cell({{1, 10, 12}, {2, 10.4f, 10}, {3, 10.7f, 8}}), {10, 10.7f, kNone, kNone},
                "chain");
  // Of two suppressors the larger one takes the segment.
  expect_modals(one_cell({{1, 10, 20}, {2, 10.75f, 19}, {3, 10.375f, 2}}),
                {10, 10.75, kNone, kNone}, "between two");
}

TEST(Modals, EvenCountsTakeTheLowerMedian) {
  expect_modals(one_cell({{1, 3, 1}, {1, 7, 1}}), {3, kNone, kNone, kNone}, "two pixels");
  expect_modals(one_cell({{1, 9, 2}, {1, 3, 1}, {1, 4, 1}}), {4, kNone, kNone, kNone}, "four");
}

TEST(Modals, RefusesMapsThatDoNotFit) {
  cv::Mat disparity(8, 8, CV_32FC1, cv::Scalar(1));
  auto text = test::error_of(ErrorKind::kUsage, [&] {
    disparity_modals(disparity, cv::Mat(8, 9, CV_32SC1, cv::Scalar(0)));
  });
  EXPECT_TRUE(test::contains(text, "9 x 8"));
  test::error_of(ErrorKind::kUsage,
                 [&] { disparity_modals(disparity, cv::Mat(8, 8, CV_16UC1, cv::Scalar(0))); });
  test::error_of(ErrorKind::kUsage,
                 [&] { disparity_modals(cv::Mat(), cv::Mat(8, 8, CV_32SC1, cv::Scalar(0))); });
  test::error_of(ErrorKind::kUsage, [&] {
    disparity_modals(cv::Mat(8, 8, CV_64FC1, cv::Scalar(1)), cv::Mat(8, 8, CV_32SC1));
  });
}

// Segments that tell the place they came from.
Sample place_coded(int width, int height) {
  Sample sample;
  sample.left = test::noise_image(width, height, 1);
  sample.right = test::noise_image(width, height, 2);
  sample.disparity = cv::Mat(height, width, CV_32FC1, cv::Scalar(3));
  sample.segments.create(height, width, CV_32SC1);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) sample.segments.at<int>(y, x) = x + 1000 * y;
  sample.right_disparity = sample.disparity.clone();
  sample.right_segments = sample.segments + 500000;
  return sample;
}

TEST(Segments, FollowTheAugmentation) {
  namespace parts = augment_parts;
  Sample sample = place_coded(30, 20);
  parts::crop(sample, {4, 3, 12, 10});
  EXPECT_EQ(sample.segments.size(), cv::Size(12, 10));
  EXPECT_EQ(sample.segments.at<int>(0, 0), 3004);
  parts::flip_vertically(sample);
  EXPECT_EQ(sample.segments.at<int>(0, 0), 12004);
  EXPECT_EQ(sample.right_segments.at<int>(0, 0), 512004);
  parts::mirror_and_swap(sample);
  EXPECT_EQ(sample.segments.at<int>(0, 0), 512015) << "of the right view, mirrored";
  EXPECT_EQ(sample.right_segments.at<int>(0, 0), 12015);
  parts::resize(sample, {24, 20});
  EXPECT_EQ(sample.segments.at<int>(6, 8), 509011) << "nearest, never mixed";
  sample.right_segments.release();
  parts::mirror_and_swap(sample);
  EXPECT_TRUE(sample.segments.empty()) << "those of the other view do not fit";
}

// Squares of 10 x 10 pixels, whatever the image shows; counts its calls.
Segmenter squares(int& calls) {
  return [&calls](const cv::Mat& image) {
    ++calls;
    cv::Mat labels(image.size(), CV_32SC1);
    for (int y = 0; y < labels.rows; ++y)
      for (int x = 0; x < labels.cols; ++x) labels.at<int>(y, x) = y / 10 * 1000 + x / 10;
    return labels;
  };
}

TEST(Segments, ObjectIdsServeOnlyWhereTheyAreEverywhere) {
  int calls = 0;
  const Segmenter segmenter = squares(calls);
  Sample sample = place_coded(32, 24);
  sample.segments.release();
  sample.right_segments.release();
  sample.objects = cv::Mat(24, 32, CV_32SC1, cv::Scalar(0));
  sample.objects.colRange(16, 32).setTo(9);

  Sample vehicles = sample;
  add_segments(vehicles, segmenter, {});
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(same(vehicles.segments, sample.objects));
  EXPECT_TRUE(vehicles.right_segments.empty()) << "not asked for";

  Sample whole = sample;
  whole.objects_everywhere = true;
  add_segments(whole, segmenter, {.use_objects = true, .both_views = true});
  EXPECT_TRUE(same(whole.segments, sample.objects));
  EXPECT_EQ(calls, 2) << "the right view has no ids";
  EXPECT_EQ(whole.right_segments.size(), cv::Size(32, 24));

  Sample both = whole;
  both.right_objects = sample.objects + 1;
  add_segments(both, segmenter, {.use_objects = true, .both_views = true});
  EXPECT_EQ(calls, 2) << "both views have ids";
  EXPECT_TRUE(same(both.right_segments, both.right_objects));

  Sample paper = sample;
  paper.objects_everywhere = true;
  add_segments(paper, segmenter, {.use_objects = false, .both_views = false});
  EXPECT_TRUE(same(paper.segments, segmenter(sample.left)));

  Sample unknown = sample;
  unknown.disparity.release();
  add_segments(unknown, segmenter, {});
  add_modals(unknown);
  EXPECT_TRUE(unknown.segments.empty() && unknown.modals.empty());
}

TEST(Segments, ModalsNeedSegmentsOrObjects) {
  Sample sample = place_coded(32, 24);
  cv::Mat wanted = disparity_modals(sample.disparity, sample.segments);
  add_modals(sample);
  EXPECT_TRUE(same(sample.modals, wanted));
  EXPECT_TRUE(sample.segments.empty() && sample.right_segments.empty()) << "spent";
  test::error_of(ErrorKind::kUsage, [&] { add_modals(sample); });
  sample.objects = cv::Mat(24, 32, CV_32SC1, cv::Scalar(4));
  sample.objects_everywhere = true;
  sample.disparity.colRange(0, 3).setTo(40);
  add_modals(sample);
  expect_modals(sample.modals.at<cv::Vec4f>(0, 0), {3, kNone, kNone, kNone}, "one object");
}

// A data set of one pair: samples carry the modals of their crop, from segments of the whole
// image.
TEST(Segments, DatasetSourceHandsOutModals) {
  test::TempFolder folder;
  const int width = 60, height = 44;
  test::put_image(folder / "left.png", 3, width, height);
  test::put_image(folder / "right.png", 4, width, height);
  cv::Mat truth(height, width, CV_32FC1);
  Rng values(8);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      truth.at<float>(y, x) = static_cast<float>(values.uniform(1, 40));
  write_disparity_mat(folder / "truth.pfm", truth);
  write_file(folder / "pairs.txt", std::string("left.png right.png truth.pfm\n"));
  DatasetOptions which;
  which.name = "list";
  which.list = (folder / "pairs.txt").string();
  std::shared_ptr<const Dataset> dataset = open_dataset(which);
  AugmentOptions how;
  how.crop_width = 40;
  how.crop_height = 20;
  how.flip = 0.5;

  int calls = 0;
  const Segmenter segmenter = squares(calls);
  DatasetSource source(dataset, how, segmenter);
  const cv::Mat labels = segmenter(dataset->load(0).left);
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    Sample sample = source.get(0, seed);
    Sample by_hand = dataset->load(0);
    by_hand.segments = labels;
    Rng rng(seed);
    by_hand = augment(by_hand, how, rng);
    ASSERT_EQ(sample.modals.size(), cv::Size(5, 3));
    EXPECT_TRUE(same(sample.modals, disparity_modals(by_hand.disparity, by_hand.segments)));
    EXPECT_TRUE(sample.segments.empty());
  }
  EXPECT_EQ(calls, 1 + 6);
  EXPECT_TRUE(DatasetSource(dataset, how).get(0, 1).modals.empty()) << "not asked for";
}

}  // namespace
}  // namespace nmrf
