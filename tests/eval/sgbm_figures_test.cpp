// The baseline's known figures on real pairs: means over the images, errors capped at 100 px.
#include <gtest/gtest.h>

#include <functional>
#include <sstream>

#include "core/file.h"
#include "data/dataset.h"
#include "eval/baseline.h"
#include "eval/metrics.h"
#include "support/support.h"

namespace nmrf {
namespace {

struct Figures {
  double epe, bad1, bad2, bad3, d1;
};

// SGBM on the lines of pairs.txt that `chosen` takes, against known figures within rounding.
void expect_figures(const std::function<bool(const std::string&)>& chosen, std::size_t pairs,
                    const Figures& known) {
  test::TempFolder folder;
  std::istringstream all(read_file(test::shared_folder() / "data/pairs.txt"));
  std::string lines;
  for (std::string line; std::getline(all, line);)
    if (chosen(line)) lines += line + "\n";
  write_file(folder / "list.txt", lines);
  DatasetOptions data;
  data.name = "list";
  data.list = folder / "list.txt";
  data.root = (test::shared_folder() / "data").string();
  const auto dataset = open_dataset(data);
  ASSERT_EQ(dataset->size(), pairs);
  MetricOptions options;
  options.error_cap = 100;
  std::map<std::string, double> sums;
  for (std::size_t i = 0; i < pairs; ++i) {
    const Sample sample = dataset->load(i);
    const RegionStats regions =
        measure(SgbmMethod().predict(sample.left, sample.right).disparity, sample, options);
    for (const char* name : {"epe", "bad1", "bad2", "bad3", "d1"})
      sums[name] += find_metric(name).value(regions.at("all")) / static_cast<double>(pairs);
  }
  EXPECT_NEAR(sums["epe"], known.epe, 0.005001);
  EXPECT_NEAR(sums["bad1"], known.bad1, 0.05001);
  EXPECT_NEAR(sums["bad2"], known.bad2, 0.05001);
  EXPECT_NEAR(sums["bad3"], known.bad3, 0.05001);
  EXPECT_NEAR(sums["d1"], known.d1, 0.05001);
}

bool has(const std::string& line, const char* part) { return line.find(part) != std::string::npos; }

TEST(SgbmFigures, Kitti2015) {
  NMRF_NEED_SHARED("data/pairs.txt");
  expect_figures([](const std::string& line) { return has(line, "KITTI_2015"); }, 26,
                 {1.88, 34.7, 15.4, 10.1, 9.9});
}

TEST(SgbmFigures, Middlebury) {
  NMRF_NEED_SHARED("data/pairs.txt");
  expect_figures(
      [](const std::string& line) { return has(line, "Middlebury") && !has(line, "FullSize"); }, 16,
      {1.88, 14.4, 10.9, 9.4, 9.4});
}

TEST(SgbmFigures, MiddleburyFullSize) {
  NMRF_NEED_SHARED("data/pairs.txt");
  expect_figures([](const std::string& line) { return has(line, "FullSize"); }, 1,
                 {3.09, 22.7, 13.4, 11.0, 7.7});
}

TEST(SgbmFigures, Eth3d) {
  NMRF_NEED_SHARED("data/pairs.txt");
  expect_figures([](const std::string& line) { return has(line, "ETH3D"); }, 1,
                 {0.50, 5.0, 2.5, 2.0, 2.0});
}

TEST(SgbmFigures, FlyingThings3D) {
  NMRF_NEED_SHARED("data/pairs.txt");
  expect_figures([](const std::string& line) { return has(line, "FlyingThings3D"); }, 2,
                 {3.04, 13.8, 9.8, 8.5, 8.2});
}

}  // namespace
}  // namespace nmrf
