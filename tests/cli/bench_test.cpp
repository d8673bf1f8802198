// nmrf bench: the shape of what it prints; times are never asserted.
#include <gtest/gtest.h>

#include "cli/run.h"

namespace nmrf::test {
namespace {

using nlohmann::json;

TEST(Bench, OneObjectPerSizeWithEverythingMeasured) {
  Outcome run = nmrf({"bench", "--preset", "fast", "--size", "96x64", "128x64", "--runs", "2",
                      "--threads", "2", "--scaling", "--json", "-q"});
  ASSERT_EQ(run.code, 0) << run.err;
  std::istringstream lines(run.out);
  std::vector<json> objects;
  for (std::string line; std::getline(lines, line);) objects.push_back(json::parse(line));
  ASSERT_EQ(objects.size(), 2u);
  EXPECT_EQ(objects[1]["size"], json({128, 64}));
  for (const auto& object : objects) {
    EXPECT_GT(object["seconds"]["best"].get<double>(), 0);
    EXPECT_GE(object["seconds"]["median"].get<double>(), object["seconds"]["best"].get<double>());
    EXPECT_GT(object["peak_gflops"].get<double>(), 0);
    EXPECT_NEAR(object["gflops"].get<double>(),
                object["gflop"].get<double>() / object["seconds"]["median"].get<double>(), 1e-6);
    EXPECT_TRUE(object["memory_mb"].is_number());
    double stages = 0;
    for (const char* name :
         {"backbone", "cost volume", "propagation", "gamma", "inference", "refinement", "heads"})
      stages += object["stages"][name]["ms"].get<double>();
    EXPECT_LE(stages, 2e3 * object["seconds"]["median"].get<double>());
    EXPECT_GT(object["one_thread"]["seconds"]["median"].get<double>(), 0);
    EXPECT_EQ(object["one_thread"]["difference"]["largest_px"].get<double>(), 0)
        << "the same map with any number of threads";
  }
}

TEST(Bench, ArithmeticAndInstructionSet) {
  auto bench = [](const std::string& precision, const std::string& simd) {
    const Outcome run = nmrf({"bench", "--preset", "fast", "--size", "96x64", "--runs", "1",
                              "--precision", precision, "--simd", simd, "--json", "-q"});
    EXPECT_EQ(run.code, 0) << run.err;
    return json_lines(run.out).at(0);
  };
  for (const char* precision : {"float32", "int8"}) {
    const auto object = bench(precision, "sse4");
    EXPECT_EQ(object["arithmetic"].get<std::string>(), precision);
#if defined(__x86_64__)
    EXPECT_EQ(object["simd"].get<std::string>(), "SSE4");
#endif
  }
  EXPECT_EQ(nmrf({"bench", "--precision", "int4"}).code, 2);
}

TEST(Bench, SenselessSettingsAreUsageErrors) {
  EXPECT_EQ(nmrf({"bench", "--preset", "fast", "--size", "16x16"}).code, 2);
  EXPECT_EQ(nmrf({"bench", "--preset", "fast", "--size", "wide"}).code, 2);
  EXPECT_EQ(nmrf({"bench", "--preset", "huge"}).code, 2);
  EXPECT_EQ(nmrf({"bench", "--preset", "fast", "--runs", "0"}).code, 2);
}

}  // namespace
}  // namespace nmrf::test
