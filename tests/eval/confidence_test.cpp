// Measuring and fitting confidences.
#include "eval/confidence.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/rng.h"
#include "eval/error_fit.h"
#include "support/support.h"

namespace nmrf {
namespace {

TEST(Confidence, PerfectAndUselessOrder) {
  Rng rng(1);
  std::vector<float> errors, perfect, useless;
  for (int i = 0; i < 4000; ++i) {
    errors.push_back(static_cast<float>(rng.uniform(0, 2)));
    perfect.push_back(1 - errors.back() / 2);
    useless.push_back(0.5f);
  }
  ConfidenceMeasure best(1), none(1), mean(0);
  best.add(errors, perfect);
  none.add(errors, useless);
  mean.add(errors, perfect);
  EXPECT_EQ(best.area(best.curve()), best.area(best.optimal()));
  // Half are bad; the optimal curve falls to 0 after half of the pixels: 2 (1 - ln 2) / 4 of them.
  EXPECT_NEAR(best.area(best.optimal()), 100 * (0.5 + 0.5 * std::log(0.5)), 1.0);
  EXPECT_NEAR(none.area(none.curve()), 50, 2);
  EXPECT_NEAR(mean.curve().front(), 1, 0.05);
  EXPECT_NEAR(mean.curve()[10], 0.5, 0.05);
  // Says half, and half it is.
  EXPECT_NEAR(none.calibration_error(), 0, 2);
  EXPECT_NEAR(none.mean_confidence(), 50, 1e-4);
}

TEST(Confidence, CalibrationError) {
  ConfidenceMeasure measure(1);
  // Says 0.9 of ten pixels of which six are right, and 0.2 of five of which one is.
  std::vector<float> errors(15, 2), says(15, 0.2f);
  for (std::size_t i = 0; i < 10; ++i) says[i] = 0.9f;
  for (std::size_t i = 0; i < 6; ++i) errors[i] = 1;  // at most the threshold
  errors[12] = 0;
  measure.add(errors, says);
  EXPECT_NEAR(measure.calibration_error(), 100 * (10 * 0.3 + 5 * 0.0) / 15, 1e-3);
  EXPECT_NEAR(measure.share_right(), 100 * 7.0 / 15, 1e-9);
  measure.add({}, {});
  EXPECT_EQ(measure.images(), 1);
  test::error_of(ErrorKind::kUsage, [&] { measure.add({1}, {}); });
}

TEST(ErrorFit, Ranges) {
  EXPECT_EQ(error_range(0), 0u);
  EXPECT_EQ(error_range(1), kernels::ErrorMlp::kBelow1 - 1);
  EXPECT_EQ(error_range(1.001f), kernels::ErrorMlp::kBelow1);
  EXPECT_EQ(error_range(3), kernels::ErrorMlp::kBelow3 - 1);
  EXPECT_EQ(error_range(1e9f), kernels::ErrorMlp::kRanges - 1);
}

// Errors are small with a probability that one feature alone tells: the fit finds it.
TEST(ErrorFit, FindsTheDistribution) {
  using kernels::ErrorMlp;
  Rng rng(5);
  ErrorSamples samples;
  auto share = [](float feature) { return 0.95 - 0.8 * std::log1p(feature) / std::log(21.0); };
  for (int i = 0; i < 40000; ++i) {
    float features[ErrorMlp::kFeatures];
    for (float& value : features) value = static_cast<float>(rng.uniform(0, 20));
    samples.features.insert(samples.features.end(), features, features + ErrorMlp::kFeatures);
    samples.errors.push_back(rng.chance(share(features[3])) ? 0.1f : 4.0f);
  }
  const ErrorFitOptions options{.epochs = 16};
  const ErrorMlp mlp = fit_error_model(samples, options);
  const std::size_t stride = kernels::error_row(1);
  for (float feature : {0.5f, 3.0f, 18.0f}) {
    std::vector<float> row(ErrorMlp::kFeatures * stride, 10.0f), out(3 * stride);
    row[3 * stride] = feature;
    kernels::error_mlp(mlp, row.data(), 1, out.data(), out.data() + stride,
                       out.data() + 2 * stride);
    EXPECT_NEAR(out[0], share(feature), 0.08);
    EXPECT_NEAR(out[stride], share(feature), 0.08);
    EXPECT_NEAR(out[2 * stride], 0.1 * share(feature) + 4 * (1 - share(feature)), 0.35);
  }
  EXPECT_EQ(fit_error_model(samples, options).weight1, mlp.weight1) << "repeats";
  EXPECT_LT(cross_entropy(mlp, samples), 0.65);
  samples.errors.resize(100);
  test::error_of(ErrorKind::kInput, [&] { fit_error_model(samples); });
}

}  // namespace
}  // namespace nmrf
