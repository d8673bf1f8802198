// Recall of labels against modals, by hand and by brute force.
#include "eval/proposals.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/rng.h"
#include "nmrf/disparity.h"
#include "support/support.h"

namespace nmrf {
namespace {

const float kNull = std::nanf("");

TEST(Proposals, OneCellByHand) {
  // Labels 10 and 50; modals 12 (2 px off), 57 (7 off), 30 (20 off), one null.
  cv::Mat labels(1, 1, CV_32FC2, cv::Scalar(10, 50)), seeds(1, 1, CV_32FC2, cv::Scalar(16, 48));
  cv::Mat modals(1, 1, CV_32FC4, cv::Scalar(12, 57, 30, kNull));
  ProposalStats stats = measure_proposals(labels, seeds, modals, 0);
  EXPECT_EQ(stats.modals, 3);
  EXPECT_EQ(stats.label_hits[0], 1);  // below 3 px
  EXPECT_EQ(stats.label_hits[1], 2);  // below 8 px
  EXPECT_EQ(stats.seed_hits[0], 1);   // 12 is 4 off, 57 is 9 off, 30 is 14 off
  EXPECT_EQ(stats.seed_hits[1], 3);
  EXPECT_NEAR(stats.best_label_epe(), (2 + 7 + 20) / 3.0, 1e-9);
  EXPECT_NEAR(stats.label_recall(1), 200.0 / 3, 1e-9);
}

TEST(Proposals, ThresholdsAreStrictAndTheLimitHolds) {
  cv::Mat labels(1, 1, CV_32FC1, cv::Scalar(100)), modals(1, 1, CV_32FC4);
  modals.setTo(cv::Scalar(103, 108, 191.5, 192));
  ProposalStats stats = measure_proposals(labels, labels, modals, 192);
  EXPECT_EQ(stats.modals, 3);
  EXPECT_EQ(stats.label_hits[0], 0);  // exactly 3 px away
  EXPECT_EQ(stats.label_hits[1], 1);  // exactly 8 px away does not count
  EXPECT_EQ(stats.seed_hits[0], 1);
}

TEST(Proposals, AgreesWithBruteForce) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng(seed);
    const int h = static_cast<int>(rng.integer(1, 5)), w = static_cast<int>(rng.integer(1, 6));
    const int k = static_cast<int>(rng.integer(1, 6));
    cv::Mat labels(h, w, CV_32FC(k)), seeds(h, w, CV_32FC(k)), modals(h, w, CV_32FC4);
    for (cv::Mat* map : {&labels, &seeds, &modals})
      for (int y = 0; y < h; ++y)
        for (int x = 0; x < w * map->channels(); ++x)
          map->ptr<float>(y)[x] = static_cast<float>(rng.uniform(0, 60));
    for (int y = 0; y < h; ++y)
      for (int x = 0; x < w * 4; ++x)
        if (rng.chance(0.4)) modals.ptr<float>(y)[x] = kNull;
    double hits3 = 0, seeds16 = 0, count = 0, sum = 0;
    for (int cell = 0; cell < h * w; ++cell)
      for (int m = 0; m < 4; ++m) {
        const float modal = modals.ptr<float>(cell / w)[cell % w * 4 + m];
        if (std::isnan(modal)) continue;
        double label = 1e9, nearest_seed = 1e9;
        for (int i = 0; i < k; ++i) {
          label = std::min<double>(label,
                                   std::abs(labels.ptr<float>(cell / w)[cell % w * k + i] - modal));
          nearest_seed = std::min<double>(
              nearest_seed, std::abs(seeds.ptr<float>(cell / w)[cell % w * k + i] - modal));
        }
        ++count;
        sum += label;
        hits3 += label < 3;
        seeds16 += nearest_seed < 16;
      }
    ProposalStats stats = measure_proposals(labels, seeds, modals, 0);
    EXPECT_EQ(static_cast<double>(stats.modals), count);
    EXPECT_EQ(static_cast<double>(stats.label_hits[0]), hits3);
    EXPECT_EQ(static_cast<double>(stats.seed_hits[1]), seeds16);
    EXPECT_NEAR(stats.label_error, sum, 1e-6);
  }
}

TEST(Proposals, NothingToLookFor) {
  cv::Mat labels(2, 2, CV_32FC2, cv::Scalar(1, 2)), modals(2, 2, CV_32FC4, cv::Scalar::all(kNull));
  ProposalStats stats = measure_proposals(labels, labels, modals, 0);
  EXPECT_TRUE(std::isnan(stats.label_recall(0)));
  EXPECT_TRUE(std::isnan(stats.best_label_epe()));
}

TEST(Proposals, SizesMustFit) {
  cv::Mat labels(2, 3, CV_32FC2, cv::Scalar(1, 2)), modals(2, 2, CV_32FC4, cv::Scalar::all(1));
  const std::string message =
      test::error_of(ErrorKind::kInput, [&] { measure_proposals(labels, labels, modals, 0); });
  EXPECT_NE(message.find("3x2"), std::string::npos) << message;
  test::error_of(ErrorKind::kInput, [&] {
    best_labels(cv::Mat(1, 1, CV_32FC1, cv::Scalar(1)), cv::Mat(9, 8, CV_32FC1, cv::Scalar(1)));
  });
}

TEST(Proposals, MergeAndJson) {
  cv::Mat labels(1, 1, CV_32FC1, cv::Scalar(10)), modals(1, 1, CV_32FC4);
  modals.setTo(cv::Scalar(11, 14, 90, kNull));
  ProposalStats once = measure_proposals(labels, labels, modals, 0), twice = once;
  twice.merge(once);
  EXPECT_EQ(twice.modals, 6);
  EXPECT_EQ(twice.label_recall(1), once.label_recall(1));
  ProposalStats back =
      ProposalStats::from_json(nlohmann::json::parse(twice.to_json().dump()), "file");
  EXPECT_EQ(back.best_label_epe(), twice.best_label_epe());
  EXPECT_EQ(back.seed_hits, twice.seed_hits);
  auto bad = twice.to_json();
  bad["label_hits"][0] = 7;
  EXPECT_NE(test::error_of(ErrorKind::kInput, [&] { ProposalStats::from_json(bad, "x.json"); })
                .find("x.json"),
            std::string::npos);
  bad.erase("modals");
  test::error_of(ErrorKind::kInput, [&] { ProposalStats::from_json(bad, "x.json"); });
}

TEST(Proposals, BestLabelsPerPixel) {
  cv::Mat labels(1, 2, CV_32FC2);
  labels.at<cv::Vec2f>(0, 0) = {10, 30};
  labels.at<cv::Vec2f>(0, 1) = {5, 6};
  cv::Mat truth(3, 10, CV_32FC1, cv::Scalar(28));
  truth.at<float>(0, 0) = 11;
  truth.at<float>(1, 1) = kInvalidDisparity;
  truth.at<float>(2, 9) = 0;
  cv::Mat best = best_labels(labels, truth);
  EXPECT_EQ(best.at<float>(0, 0), 10);
  EXPECT_EQ(best.at<float>(0, 7), 30);
  EXPECT_EQ(best.at<float>(0, 8), 6);
  EXPECT_EQ(best.at<float>(2, 9), 5);
  EXPECT_TRUE(std::isinf(best.at<float>(1, 1)));
}

TEST(WinnerHistogram, CountsAndMerges) {
  WinnerHistogram histogram;
  cv::Mat confidence = (cv::Mat_<float>(1, 6) << 0, 0.049f, 0.5f, 0.99f, 1.0f, kNull);
  histogram.add(confidence);
  EXPECT_EQ(histogram.total(), 5);
  EXPECT_EQ(histogram.counts[0], 2);
  EXPECT_EQ(histogram.counts[10], 1);
  EXPECT_EQ(histogram.counts[19], 2);
  EXPECT_NEAR(histogram.mean(), (2 * 0.025 + 0.525 + 2 * 0.975) / 5, 1e-9);
  WinnerHistogram twice = histogram;
  twice.merge(histogram);
  EXPECT_EQ(WinnerHistogram::from_json(twice.to_json(), "f").total(), 10);
  test::error_of(ErrorKind::kInput, [] { WinnerHistogram::from_json({1, 2}, "f"); });
  EXPECT_TRUE(std::isnan(WinnerHistogram{}.mean()));
}

}  // namespace
}  // namespace nmrf
