// The error model: its kernel, its place in model files, its features.
#include "matching/error_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/rng.h"
#include "matching/pictures.h"
#include "support/support.h"

namespace nmrf {
namespace {

ErrorMlp random_model(std::uint64_t seed) {
  Rng rng(seed);
  ErrorMlp mlp;
  auto fill = [&](auto& values, double size) {
    for (float& value : values) value = static_cast<float>(rng.uniform(-size, size));
  };
  for (auto& row : mlp.weight1) fill(row, 0.5);
  for (auto& row : mlp.weight2) fill(row, 0.7);
  fill(mlp.bias1, 1);
  fill(mlp.bias2, 1);
  for (std::size_t i = 0; i < mlp.mean.size(); ++i) mlp.mean[i] = static_cast<float>(i) + 0.25f;
  return mlp;
}

// The plain form, in double precision.
std::array<double, 3> plain(const ErrorMlp& mlp, const float* features, std::size_t stride) {
  std::array<double, ErrorMlp::kHidden> hidden{};
  for (std::size_t h = 0; h < hidden.size(); ++h) {
    double sum = mlp.bias1[h];
    for (std::size_t f = 0; f < ErrorMlp::kFeatures; ++f)
      sum += mlp.weight1[h][f] * std::log1p(static_cast<double>(features[f * stride]));
    hidden[h] = std::max(0.0, sum);
  }
  double total = 0, below1 = 0, below3 = 0, mean = 0;
  for (std::size_t r = 0; r < ErrorMlp::kRanges; ++r) {
    double logit = mlp.bias2[r];
    for (std::size_t h = 0; h < hidden.size(); ++h) logit += mlp.weight2[r][h] * hidden[h];
    const double weight = std::exp(logit);
    total += weight;
    if (r < ErrorMlp::kBelow1) below1 += weight;
    if (r < ErrorMlp::kBelow3) below3 += weight;
    mean += weight * mlp.mean[r];
  }
  return {below1 / total, below3 / total, mean / total};
}

TEST(ErrorModel, KernelAgainstPlainForm) {
  const ErrorMlp mlp = random_model(1);
  for (std::size_t width : {1u, 7u, 16u, 33u, 131u}) {
    const std::size_t stride = kernels::error_row(width);
    Rng rng(width);
    std::vector<float> features(ErrorMlp::kFeatures * stride), out(3 * stride);
    for (float& value : features)
      value = rng.chance(0.2) ? 0 : static_cast<float>(std::exp(rng.uniform(-6, 8)));
    kernels::error_mlp(mlp, features.data(), width, out.data(), out.data() + stride,
                       out.data() + 2 * stride);
    for (std::size_t x = 0; x < width; ++x) {
      const auto expected = plain(mlp, features.data() + x, stride);
      for (std::size_t i = 0; i < 3; ++i)
        EXPECT_NEAR(out[i * stride + x], expected[i], 2e-5 * (1 + expected[i]))
            << width << " " << x;
    }
  }
}

TEST(ErrorModel, LivesInTheMetadata) {
  const ErrorMlp mlp = random_model(2);
  std::map<std::string, std::string> metadata{{"other", "x"}};
  EXPECT_FALSE(error_model_of(metadata, "m"));
  metadata[kErrorModelKey] = to_json(mlp).dump();
  const auto back = error_model_of(metadata, "m");
  ASSERT_TRUE(back);
  EXPECT_EQ(back->weight1, mlp.weight1);
  EXPECT_EQ(back->weight2, mlp.weight2);
  EXPECT_EQ(back->bias1, mlp.bias1);
  EXPECT_EQ(back->bias2, mlp.bias2);
  EXPECT_EQ(back->mean, mlp.mean);

  auto damaged = [&](const char* key, const nlohmann::json& value) {
    auto json = to_json(mlp);
    json[key] = value;
    metadata[kErrorModelKey] = json.dump();
    return test::error_of(ErrorKind::kModel, [&] { error_model_of(metadata, "m.safetensors"); });
  };
  EXPECT_NE(damaged("features", {"a", "b"}).find("other features"), std::string::npos);
  EXPECT_NE(damaged("bias1", {1, 2}).find("m.safetensors"), std::string::npos);
  damaged("weight1", "text");
  damaged("mean", nlohmann::json::array({1, 2, 3, 4, 5, 6, 7, nullptr}));
  metadata[kErrorModelKey] = "{";
  test::error_of(ErrorKind::kModel, [&] { error_model_of(metadata, "m"); });
}

// A perfectly matched pair has no cost; a wrong disparity has.
TEST(ErrorModel, FeaturesTellAboutTheMatch) {
  constexpr int kWidth = 61, kHeight = 23, kShift = 5;
  const Image wide = test::noise_image(kWidth + kShift, kHeight, 3);
  Image left(kWidth, kHeight), right(kWidth, kHeight);
  for (int y = 0; y < kHeight; ++y) {
    std::copy_n(wide.row(y), 3 * kWidth, left.row(y));
    std::copy_n(wide.row(y) + 3 * kShift, 3 * kWidth, right.row(y));
  }
  FloatMap map(kWidth, kHeight, kShift), network = map;
  map.at(11, 40) = 9;  // finishing put it there
  FloatMap posterior(kWidth, kHeight, 0.75f);
  ByteMap mask(kWidth, kHeight);
  mask.at(3, 4) = kOccluded | kFilled;
  PassEvidence evidence;
  for (FloatMap* plane : {&evidence.spread, &evidence.refined, &evidence.guided})
    *plane = FloatMap(kWidth, kHeight, 0.5f);
  const ErrorInput input{&left, &right, &network, &map, &posterior, &mask, &evidence, 1};
  auto index = [](const char* name) {
    for (std::size_t i = 0; i < kErrorFeatures.size(); ++i)
      if (std::string_view(kErrorFeatures[i]) == name) return i;
    return kErrorFeatures.size();
  };
  std::vector<float> all, again;
  ThreadPool one(1), three(3);
  ErrorEstimate estimate;
  estimate.features(input, one, all);
  estimate.features(input, three, again);
  EXPECT_EQ(all, again);
  auto feature = [&](int y, int x, const char* name) {
    return all[static_cast<std::size_t>(y * kWidth + x) * ErrorMlp::kFeatures + index(name)];
  };
  EXPECT_EQ(feature(11, 20, "cost"), 0);
  EXPECT_GT(feature(11, 20, "cost_beside"), 20);
  EXPECT_GT(feature(11, 40, "cost"), 0.1);
  EXPECT_EQ(feature(11, 40, "finished"), 4);
  EXPECT_EQ(feature(11, 20, "finished"), 0);
  EXPECT_EQ(feature(11, 42, "step_x2"), 4);
  EXPECT_EQ(feature(13, 40, "step_y2"), 4);
  EXPECT_NEAR(feature(11, 20, "doubt"), 1 / (1.0001 - 0.75), 1e-3);
  EXPECT_EQ(feature(3, 4, "occluded") + feature(3, 4, "filled"), 2);
  EXPECT_EQ(feature(3, 4, "out_of_view"), 0);
  EXPECT_EQ(feature(11, 20, "disparity"), kShift);

  // Cells of no number give numbers all the same.
  map.at(5, 5) = kInvalidDisparity;
  network.at(6, 6) = posterior.at(7, 7) = std::nanf("");
  Disparity result;
  estimate.apply(random_model(4), input, one, result);
  for (const FloatMap* plane : {&result.confidence, &result.confidence3, &result.expected_error})
    for (float value : *plane) ASSERT_TRUE(std::isfinite(value));
  for (std::size_t i = 0; i < result.map.size(); ++i)
    ASSERT_LE(result.confidence.data()[i], result.confidence3.data()[i]);
}

}  // namespace
}  // namespace nmrf
