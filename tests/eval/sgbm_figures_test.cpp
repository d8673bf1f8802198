// The baseline's known figures on a few real pairs.
#include <gtest/gtest.h>

#include "data/dataset.h"
#include "eval/baseline.h"
#include "eval/metrics.h"
#include "support/support.h"

namespace nmrf {
namespace {

RegionStats measured(const std::string& name, const std::string& setting, const char* root) {
  DatasetOptions data;
  data.name = name;
  data.root = (test::shared_folder() / "data" / root).string();
  if (!setting.empty()) set_field(data, setting);
  const Sample sample = open_dataset(data)->load(0);
  MetricOptions options;
  options.error_cap = 100;
  return measure(SgbmMethod().predict(sample.left, sample.right).disparity, sample, options);
}

void expect_figures(const ErrorStats& stats, double epe, double bad1, double bad2, double bad3,
                    double d1) {
  EXPECT_NEAR(find_metric("epe").value(stats), epe, 0.005001);
  EXPECT_NEAR(find_metric("bad1").value(stats), bad1, 0.05001);
  EXPECT_NEAR(find_metric("bad2").value(stats), bad2, 0.05001);
  EXPECT_NEAR(find_metric("bad3").value(stats), bad3, 0.05001);
  EXPECT_NEAR(find_metric("d1").value(stats), d1, 0.05001);
}

TEST(SgbmFigures, Eth3d) {
  NMRF_NEED_SHARED("data/ETH3D");
  expect_figures(measured("eth3d", "", "ETH3D").at("all"), 0.50, 5.0, 2.5, 2.0, 2.0);
}

TEST(SgbmFigures, MiddleburyFullSize) {
  NMRF_NEED_SHARED("data/Middlebury/2005/FullSize");
  expect_figures(measured("middlebury-2005", "size=full", "Middlebury").at("all"), 3.09, 22.7, 13.4,
                 11.0, 7.7);
}

}  // namespace
}  // namespace nmrf
