// Metrics against hand-made cases and a slow form that follows the definitions word by word.
#include "eval/metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/rng.h"
#include "nmrf/disparity.h"
#include "support/support.h"

namespace nmrf {
namespace {

constexpr float kHole = kInvalidDisparity;

cv::Mat row_of(std::initializer_list<float> values) {
  cv::Mat row(1, static_cast<int>(values.size()), CV_32FC1);
  std::copy(values.begin(), values.end(), row.ptr<float>());
  return row;
}

Sample with_truth(cv::Mat truth) {
  Sample sample;
  sample.name = "pair";
  sample.disparity = std::move(truth);
  return sample;
}

double value(const RegionStats& regions, const std::string& region, const std::string& metric) {
  return find_metric(metric).value(regions.at(region));
}

TEST(Metrics, ThresholdsAreStrict) {
  // Errors of exactly 0.5, 1, 2, 3, 4, 5 and nothing.
  Sample sample = with_truth(row_of({10, 10, 10, 10, 10, 10, 10}));
  auto r = measure(row_of({10.5f, 11, 12, 13, 14, 15, 10}), sample, {});
  const double seventh = 100.0 / 7;
  EXPECT_NEAR(value(r, "all", "bad0.5"), 5 * seventh, 1e-9);
  EXPECT_NEAR(value(r, "all", "bad1"), 4 * seventh, 1e-9);
  EXPECT_NEAR(value(r, "all", "bad2"), 3 * seventh, 1e-9);
  EXPECT_NEAR(value(r, "all", "bad3"), 2 * seventh, 1e-9);
  EXPECT_NEAR(value(r, "all", "bad4"), 1 * seventh, 1e-9);
  EXPECT_EQ(value(r, "all", "bad5"), 0);
  EXPECT_NEAR(value(r, "all", "epe"), 15.5 / 7, 1e-9);
  EXPECT_NEAR(value(r, "all", "rms"), std::sqrt((0.25 + 1 + 4 + 9 + 16 + 25) / 7), 1e-9);
}

TEST(Metrics, D1NeedsBothConditions) {
  // 3 px at 20: not more than 3. 4 px at 80: exactly 5 %. 4 at 79: yes. 4 at 100: below 5 %.
  Sample sample = with_truth(row_of({20, 80, 79, 100, 0, 0}));
  auto r = measure(row_of({23, 84, 83, 104, 3, 3.5f}), sample, {});
  EXPECT_EQ(r.at("all").d1, 2);  // 4 at 79, and 3.5 at a truth of zero
}

TEST(Metrics, EdgesAreWhereTheTruthSteps) {
  // A step of 10 between columns 4 and 5; one of exactly 2 is none, nor is one beside a hole.
  const cv::Mat truth = row_of({10, 10, 10, 10, 10, 20, 20, 20, 20, 22, kHole, 40});
  const cv::Mat found = row_of({10, 10, 10, 13, 10, 20, 20, 20, 30, 22, 0, 40});
  auto within = [&](int reach) {
    MetricOptions options;
    options.edges = reach;
    return measure(found, with_truth(truth), options);
  };
  EXPECT_FALSE(within(0).contains("edges"));
  EXPECT_EQ(within(1).at("edges").pixels, 2);
  EXPECT_EQ(value(within(1), "edges", "bad2"), 0);
  EXPECT_EQ(within(2).at("edges").pixels, 4);
  EXPECT_EQ(value(within(2), "edges", "bad2"), 25);
  EXPECT_EQ(within(4).at("edges").pixels, 8);
  EXPECT_EQ(value(within(4), "edges", "bad2"), 25);  // columns 3 and 8
}

TEST(Metrics, SurfacesAreMeasuredApart) {
  Sample sample = with_truth(row_of({10, 10, 10, kHole}));
  sample.surfaces = (cv::Mat_<uchar>(1, 4) << 1, 3, 3, 4);
  const cv::Mat found = row_of({10, 14, 10, 10});
  MetricOptions options;
  EXPECT_FALSE(measure(found, sample, options).contains("glossy"));
  options.surfaces = true;
  const RegionStats regions = measure(found, sample, options);
  EXPECT_EQ(value(regions, "matte", "bad3"), 0);
  EXPECT_EQ(value(regions, "glossy", "bad3"), 50);
  EXPECT_FALSE(regions.contains("reflecting"));  // no truth there
}

TEST(Metrics, ZeroTruthIsKnown) {
  auto r = measure(row_of({0, 1}), with_truth(row_of({0, 0})), {});
  EXPECT_EQ(r.at("all").pixels, 2);
  EXPECT_EQ(value(r, "all", "epe"), 0.5);
}

TEST(Metrics, UnknownTruthAndTheLimitAreLeftOut) {
  MetricOptions options;
  options.max_disparity = 192;
  Sample sample = with_truth(row_of({kHole, std::nanf(""), 191.5f, 192, 300}));
  auto r = measure(row_of({1, 1, 190.5f, 1, 1}), sample, options);
  EXPECT_EQ(r.at("all").pixels, 1);
  EXPECT_EQ(value(r, "all", "epe"), 1);
}

TEST(Metrics, HolesByTheThreeRules) {
  Sample sample = with_truth(row_of({0, 0, 0, 0}));
  const cv::Mat predicted = row_of({0, kHole, std::nanf(""), 4});
  MetricOptions options;
  options.holes = Holes::kCount;
  auto count = measure(predicted, sample, options);
  EXPECT_EQ(value(count, "all", "bad3"), 25);
  EXPECT_EQ(value(count, "all", "invalid"), 50);
  EXPECT_EQ(value(count, "all", "totbad2"), 75);
  EXPECT_EQ(value(count, "all", "epe"), 2);
  EXPECT_EQ(value(count, "all", "density"), 50);

  options.holes = Holes::kExclude;
  auto exclude = measure(predicted, sample, options);
  EXPECT_EQ(value(exclude, "all", "bad3"), 50);
  EXPECT_EQ(value(exclude, "all", "density"), 50);

  options.holes = Holes::kFill;  // both take 0
  auto fill = measure(predicted, sample, options);
  EXPECT_EQ(value(fill, "all", "bad3"), 25);
  EXPECT_EQ(value(fill, "all", "epe"), 1);
  EXPECT_EQ(value(fill, "all", "invalid"), 0);
  EXPECT_EQ(value(fill, "all", "density"), 50);
}

TEST(Metrics, PredictionBeyondTheWidthIsNoneForEth3d) {
  MetricOptions options;
  options.holes = Holes::kExclude;
  auto r = measure(row_of({3, 3.5f, -3.5f}), with_truth(row_of({3, 3, 3})), options);
  EXPECT_NEAR(value(r, "all", "density"), 100.0 / 3, 1e-9);
  EXPECT_EQ(value(r, "all", "epe"), 0);
}

TEST(Metrics, AllInvalidIsTheWorstResult) {
  Sample sample = with_truth(row_of({1, 2, 3}));
  const cv::Mat nothing = row_of({kHole, kHole, kHole});
  for (Holes holes : {Holes::kExclude, Holes::kFill}) {
    MetricOptions options;
    options.holes = holes;
    auto r = measure(nothing, sample, options);
    EXPECT_EQ(value(r, "all", "bad1"), 100) << enum_name(holes);
    EXPECT_EQ(value(r, "all", "d1"), 100) << enum_name(holes);
    EXPECT_TRUE(std::isinf(value(r, "all", "epe")));
    EXPECT_TRUE(std::isinf(value(r, "all", "a50")));
  }
  auto r = measure(nothing, sample, {});
  EXPECT_EQ(value(r, "all", "bad1"), 0);
  EXPECT_EQ(value(r, "all", "totbad1"), 100);
}

TEST(Metrics, NoTruthGivesNoNumber) {
  auto r = measure(row_of({1, 2}), with_truth(row_of({kHole, kHole})), {});
  for (const Metric& metric : all_metrics())
    EXPECT_TRUE(std::isnan(metric.value(r.at("all")))) << metric.name;
}

TEST(Metrics, CapAndClip) {
  MetricOptions options;
  options.error_cap = 100;
  auto capped = measure(row_of({250, 10}), with_truth(row_of({10, 10})), options);
  EXPECT_EQ(value(capped, "all", "epe"), 50);
  EXPECT_EQ(value(capped, "all", "a50"), 240);  // the cap is for the means only
  options = {};
  options.clip = 64;
  auto clipped = measure(row_of({250, -5, kHole}), with_truth(row_of({60, 1, 1})), options);
  EXPECT_EQ(value(clipped, "all", "epe"), 2.5);
  EXPECT_EQ(clipped.at("all").invalid(), 1);
}

TEST(Metrics, RegionsSplitThePixels) {
  Sample sample = with_truth(row_of({10, 10, 10, 10, kHole}));
  sample.noc_mask = (cv::Mat_<uchar>(1, 5) << 255, 255, 0, 128, 255);
  sample.objects = (cv::Mat_<int>(1, 5) << 0, 3, 0, 1, 1);
  sample.reflective_mask = (cv::Mat_<uchar>(1, 5) << 255, 0, 0, 255, 0);
  MetricOptions options;
  auto plain = measure(row_of({10, 15, 10, 15, 1}), sample, options);
  EXPECT_FALSE(plain.contains("fg"));
  options.objects = true;
  auto r = measure(row_of({10, 15, 10, 15, 1}), sample, options);
  std::map<std::string, std::pair<int, int>> want{
      {"all", {4, 2}},    {"noc", {2, 1}},    {"occ", {2, 1}},  {"bg", {2, 0}},      {"fg", {2, 2}},
      {"noc-bg", {1, 0}}, {"noc-fg", {1, 1}}, {"refl", {2, 1}}, {"noc-refl", {1, 0}}};
  ASSERT_EQ(r.size(), want.size());
  for (const auto& [name, counts] : want) {
    EXPECT_EQ(r.at(name).pixels, counts.first) << name;
    EXPECT_EQ(r.at(name).d1, counts.second) << name;
  }
}

// KITTI's disp_noc differs from disp_occ in places; its kit compares visible pixels with the
// former.
TEST(Metrics, VisiblePixelsHaveATruthOfTheirOwn) {
  Sample sample = with_truth(row_of({100, 100, 100, kHole}));
  sample.noc_disparity = row_of({100, 104, kHole, 50});
  sample.noc_mask = (cv::Mat_<uchar>(1, 4) << 255, 255, 0, 255);
  const auto r = measure(row_of({104.5f, 104.5f, 100, 60}), sample, {});
  EXPECT_EQ(r.at("all").pixels, 3);
  EXPECT_NEAR(value(r, "all", "epe"), 9.0 / 3, 1e-6);
  EXPECT_EQ(r.at("noc").pixels, 3) << "those of disp_noc, where disp_occ is unknown too";
  EXPECT_NEAR(value(r, "noc", "epe"), (4.5 + 0.5 + 10) / 3, 1e-6);
  EXPECT_EQ(r.at("noc").d1, 1);
  EXPECT_EQ(r.at("occ").pixels, 1);
}

// Everything from scratch, one metric at a time.
struct Slow {
  std::vector<double> errors, truths;
  std::int64_t pixels = 0;
  void add(float d, float t) {
    ++pixels;
    if (!std::isfinite(d)) return;
    errors.push_back(std::abs(d - t));
    truths.push_back(t);
  }
  double bad(double threshold) const {
    double n = 0;
    for (double e : errors) n += e > threshold;
    return 100 * n / static_cast<double>(pixels);
  }
  double d1() const {
    double n = 0;
    for (std::size_t i = 0; i < errors.size(); ++i)
      n += errors[i] > 3 && (truths[i] == 0 || errors[i] / truths[i] > 0.05);
    return 100 * n / static_cast<double>(pixels);
  }
  double mean() const {
    double sum = 0;
    for (double e : errors) sum += e;
    return sum / static_cast<double>(errors.size());
  }
  double quantile(double q) const {
    auto sorted = errors;
    std::sort(sorted.begin(), sorted.end());
    return sorted[static_cast<std::size_t>(std::floor(q * static_cast<double>(sorted.size())))];
  }
};

TEST(Metrics, AgreesWithTheSlowForm) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Rng rng(seed);
    const int h = static_cast<int>(rng.integer(1, 23)), w = static_cast<int>(rng.integer(3, 31));
    Sample sample = with_truth(cv::Mat(h, w, CV_32FC1));
    sample.noc_mask = cv::Mat(h, w, CV_8UC1);
    cv::Mat predicted(h, w, CV_32FC1);
    Slow all, noc, occ;
    for (int y = 0; y < h; ++y)
      for (int x = 0; x < w; ++x) {
        // Quarters of a pixel, so that ties at thresholds happen.
        const float t = rng.chance(0.3) ? kHole : static_cast<float>(rng.integer(0, 400)) / 4;
        const float d = rng.chance(0.1)
                            ? kHole
                            : std::max(0.0f, (std::isfinite(t) ? t : 1) +
                                                 static_cast<float>(rng.integer(-24, 24)) / 4);
        sample.disparity.at<float>(y, x) = t;
        predicted.at<float>(y, x) = d;
        const bool seen = rng.chance(0.8);
        sample.noc_mask.at<uchar>(y, x) = seen ? 255 : 0;
        if (!std::isfinite(t)) continue;
        all.add(d, t);
        (seen ? noc : occ).add(d, t);
      }
    auto r = measure(predicted, sample, {});
    for (const auto& [name, slow] :
         {std::pair<std::string, const Slow&>{"all", all}, {"noc", noc}, {"occ", occ}}) {
      if (slow.errors.empty()) continue;
      SCOPED_TRACE(name + " of seed " + std::to_string(seed));
      EXPECT_NEAR(value(r, name, "epe"), slow.mean(), 1e-9);
      EXPECT_NEAR(value(r, name, "bad0.5"), slow.bad(0.5), 1e-9);
      EXPECT_NEAR(value(r, name, "bad1"), slow.bad(1), 1e-9);
      EXPECT_NEAR(value(r, name, "bad2"), slow.bad(2), 1e-9);
      EXPECT_NEAR(value(r, name, "bad3"), slow.bad(3), 1e-9);
      EXPECT_NEAR(value(r, name, "bad4"), slow.bad(4), 1e-9);
      EXPECT_NEAR(value(r, name, "bad5"), slow.bad(5), 1e-9);
      EXPECT_NEAR(value(r, name, "d1"), slow.d1(), 1e-9);
      EXPECT_EQ(value(r, name, "a50"), slow.quantile(0.5));
      EXPECT_EQ(value(r, name, "a90"), slow.quantile(0.9));
      EXPECT_EQ(value(r, name, "a95"), slow.quantile(0.95));
      EXPECT_EQ(value(r, name, "a99"), slow.quantile(0.99));
    }
  }
}

TEST(Metrics, AggregationIsAChoice) {
  // One pixel, wrong; three pixels, right.
  auto one = measure(row_of({20}), with_truth(row_of({10})), {});
  auto three = measure(row_of({10, 10, 10}), with_truth(row_of({10, 10, 10})), {});
  auto none = measure(row_of({1}), with_truth(row_of({kHole})), {});
  std::vector<const ErrorStats*> images{&one.at("all"), &none.at("all"), &three.at("all")};
  const Metric& d1 = find_metric("d1");
  EXPECT_EQ(aggregate(images, d1, Aggregation::kImages), 50);
  EXPECT_EQ(aggregate(images, d1, Aggregation::kPixels), 25);
  EXPECT_EQ(aggregate(images, d1, Aggregation::kWeighted, {1, 1, 3}), 25);
  EXPECT_EQ(aggregate(images, d1, Aggregation::kImages, {1, 1, 3}), 50);
  EXPECT_TRUE(std::isnan(aggregate({}, d1, Aggregation::kImages)));
  EXPECT_TRUE(std::isnan(aggregate({&none.at("all")}, d1, Aggregation::kImages)));
  test::error_of(ErrorKind::kUsage, [&] { aggregate(images, d1, Aggregation::kImages, {1}); });
}

TEST(Metrics, MergedQuantilesComeFromTheHistogram) {
  Rng rng(7);
  ErrorStats pool;
  std::vector<double> errors;
  for (int part = 0; part < 5; ++part) {
    cv::Mat truth(40, 50, CV_32FC1, cv::Scalar(100)), predicted(40, 50, CV_32FC1);
    for (int i = 0; i < 2000; ++i) {
      const float d = 100 + static_cast<float>(std::exp(rng.uniform(-4, 4)));
      predicted.at<float>(i / 50, i % 50) = d;
      errors.push_back(d - 100);
    }
    pool.merge(measure(predicted, with_truth(truth), {}).at("all"));
  }
  std::sort(errors.begin(), errors.end());
  for (const auto& [name, q] :
       {std::pair{"a50", 0.5}, {"a90", 0.9}, {"a95", 0.95}, {"a99", 0.99}}) {
    const double exact = errors[static_cast<std::size_t>(std::floor(q * 10000))];
    EXPECT_NEAR(find_metric(name).value(pool), exact, 0.004 + 0.03 * exact) << name;
  }
}

TEST(Metrics, HistogramTakesAnyError) {
  ErrorHistogram histogram;
  for (double error : {0.0, 1e-9, 0.5, 1e6, 1e30, static_cast<double>(kHole)}) histogram.add(error);
  EXPECT_EQ(histogram.total(), 6);
  EXPECT_EQ(histogram.counts().front(), 2);
  EXPECT_EQ(histogram.counts().back(), 3);
  for (int bin = 0; bin < ErrorHistogram::kBins; ++bin)
    EXPECT_LT(ErrorHistogram::lower_edge(bin), ErrorHistogram::lower_edge(bin + 1));
}

TEST(Metrics, JsonKeepsEverything) {
  Sample sample = with_truth(row_of({10, 20, 30, 40}));
  sample.noc_mask = (cv::Mat_<uchar>(1, 4) << 255, 0, 255, 255);
  auto before = measure(row_of({11, 25, kHole, 40.25f}), sample, {});
  auto after = regions_from_json(nlohmann::json::parse(to_json(before).dump()), "file");
  ASSERT_EQ(after.size(), before.size());
  for (const auto& [name, stats] : before)
    for (const Metric& metric : all_metrics())
      EXPECT_EQ(metric.value(after.at(name)), metric.value(stats)) << name << " " << metric.name;
}

TEST(Metrics, DamagedJsonIsRefused) {
  auto good = to_json(measure(row_of({11, 25}), with_truth(row_of({10, 20})), {}));
  auto refuse = [](nlohmann::json json, const std::string& expected) {
    const std::string message =
        test::error_of(ErrorKind::kInput, [&] { regions_from_json(json, "one.json"); });
    EXPECT_NE(message.find("one.json"), std::string::npos) << message;
    EXPECT_NE(message.find(expected), std::string::npos) << message;
  };
  refuse(nlohmann::json::array(), "no result");
  auto bad = good;
  bad["all"].erase("d1");
  refuse(bad, "d1");
  bad = good;
  bad["all"]["pixels"] = "many";
  refuse(bad, "no result");
  bad = good;
  bad["all"]["bad"][0] = 99;
  refuse(bad, "contradict");
  bad = good;
  bad["all"]["histogram"] = {{1000, 2}};
  refuse(bad, "no bin");
  bad = good;
  bad["all"]["holes"] = "none";
  refuse(bad, "holes");
}

TEST(Metrics, MismatchesAreRefused) {
  Sample sample = with_truth(row_of({1, 2, 3}));
  std::string message = test::error_of(ErrorKind::kInput, [&] {
    measure(row_of({1, 2}), sample, {});
  });
  EXPECT_NE(message.find("2x1"), std::string::npos);
  sample.noc_mask = cv::Mat(2, 2, CV_8UC1, cv::Scalar(255));
  message = test::error_of(ErrorKind::kInput, [&] { measure(row_of({1, 2, 3}), sample, {}); });
  EXPECT_NE(message.find("visible"), std::string::npos);
  test::error_of(ErrorKind::kInput, [&] { measure(row_of({1}), Sample{}, {}); });
  message = test::error_of(ErrorKind::kUsage, [] { find_metric("epee"); });
  EXPECT_NE(message.find("bad0.5"), std::string::npos);
  MetricOptions options;
  options.error_cap = -1;
  test::error_of(ErrorKind::kUsage, [&] { options.validate(); });
}

TEST(Metrics, DifferentRulesDoNotMix) {
  Sample sample = with_truth(row_of({1, 2, 3}));
  MetricOptions fill;
  fill.holes = Holes::kFill;
  auto one = measure(row_of({1, 2, 3}), sample, {});
  auto other = measure(row_of({1, 2, 3}), sample, fill);
  test::error_of(ErrorKind::kUsage, [&] { merge(one, other); });
}

}  // namespace
}  // namespace nmrf
