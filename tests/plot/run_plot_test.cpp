// Logs of runs read back, and the sheets made of them.
#include "plot/run_plot.h"

#include <gtest/gtest.h>

#include "core/file.h"
#include "support/support.h"

namespace nmrf {
namespace {

namespace fs = std::filesystem;

fs::path write_run(const fs::path& folder, int steps, const std::string& tail = "") {
  fs::create_directories(folder);
  std::string log;
  for (int step = 1; step <= steps; ++step) {
    log += nlohmann::json({{"step", step},
                           {"loss", 10.0 / step},
                           {"coarse_0", 3.0},
                           {"coarse_1", 2.0},
                           {"epe", 5.0 / step},
                           {"lr", 1e-4},
                           {"samples_per_second", 2.0}})
               .dump() +
           "\n";
    if (step % 5 == 0)
      log += nlohmann::json({{"step", step}, {"validation", true}, {"epe", 4.0}, {"pairs", 3}})
                 .dump() +
             "\n";
  }
  write_file(folder / "log.jsonl", log + tail);
  return folder;
}

TEST(RunLog, ReadsWhatTheWriterWrote) {
  test::TempFolder folder;
  {
    JsonLog log(folder / "run", 0);
    log.write({{"step", 1}, {"loss", 2.5}, {"epe", NAN}});
    log.write({{"step", 2}, {"loss", 1.5}, {"note", "text"}});
    log.write({{"step", 2}, {"validation", true}, {"epe", 0.75}});
    log.write({{"step", 3}, {"loss", 1.25}});
  }
  {  // resumed at 2: the third update is gone
    JsonLog log(folder / "run", 2);
    log.write({{"step", 3}, {"loss", 1.125}});
  }
  RunLog log = read_run_log(folder / "run");
  EXPECT_EQ(log.name, "run");
  EXPECT_EQ(log.train.at("loss"), (Curve{{1, 2.5}, {2, 1.5}, {3, 1.125}}));
  EXPECT_EQ(log.validation.at("epe"), (Curve{{2, 0.75}}));
  EXPECT_EQ(log.train.count("epe"), 0u) << "a value that is no number";
  EXPECT_EQ(log.train.count("note"), 0u);
  EXPECT_TRUE(log.stage_starts.empty());
  EXPECT_EQ(read_run_log(folder / "run/log.jsonl").name, "run");
}

TEST(RunLog, HalfALineAtTheEndIsPassedOver) {
  test::TempFolder folder;
  RunLog log = read_run_log(write_run(folder / "r", 3, "{\"step\": 4, \"lo"));
  EXPECT_EQ(log.train.at("loss").size(), 3u);
}

TEST(RunLog, StagesComeFromTheSettings) {
  test::TempFolder folder;
  write_run(folder / "r", 3);
  write_file(
      folder / "r/config.toml",
      "[stage1]\nsteps = 100\n[stage2]\nsteps = 0\n[stage3]\nsteps = 40\n[stage4]\nsteps = 7\n");
  EXPECT_EQ(read_run_log(folder / "r").stage_starts, (std::vector<std::int64_t>{100, 140}));
  write_file(folder / "r/config.toml", "[stage1\n");
  EXPECT_TRUE(read_run_log(folder / "r").stage_starts.empty()) << "a warning, no error";
}

TEST(RunLog, WhatIsNoRunIsRefused) {
  test::TempFolder folder;
  auto message = test::error_of(ErrorKind::kInput, [&] { read_run_log(folder / "none"); });
  EXPECT_NE(message.find("none"), std::string::npos);
  message = test::error_of(ErrorKind::kInput, [&] { read_run_log(folder.path()); });
  EXPECT_NE(message.find("log.jsonl"), std::string::npos);
  write_file(folder / "log.jsonl", "");
  test::error_of(ErrorKind::kInput, [&] { read_run_log(folder.path()); });
  write_file(folder / "log.jsonl", "[1, 2]\nnothing\n{\"step\": \"one\"}\n\n");
  message = test::error_of(ErrorKind::kInput, [&] { read_run_log(folder.path()); });
  EXPECT_NE(message.find("is not the log of a run"), std::string::npos) << message;
  write_file(folder / "log.jsonl", std::string("\x89PNG\r\n\x1a\n\0\0", 10));
  message = test::error_of(ErrorKind::kInput, [&] { read_run_log(folder.path()); });
  EXPECT_NE(message.find("is not the log of a run"), std::string::npos) << message;
}

std::vector<std::string> titles(const ChartSheet& sheet) {
  std::vector<std::string> all;
  for (const auto& panel : sheet.panels) all.push_back(panel.title);
  return all;
}

TEST(RunSheet, UsualCurvesInTheirOrder) {
  test::TempFolder folder;
  RunLog log = read_run_log(write_run(folder / "a", 10));
  ChartSheet sheet = run_sheet({log}, {});
  EXPECT_EQ(titles(sheet),
            (std::vector<std::string>{"loss", "EPE [px]", "inference, layer 1", "learning rate"}));
  ASSERT_EQ(sheet.panels[1].series.size(), 2u) << "training and validation";
  EXPECT_FALSE(sheet.panels[1].series[0].markers);
  EXPECT_TRUE(sheet.panels[1].series[1].markers);
  EXPECT_EQ(sheet.panels[1].series[1].points, (Curve{{5, 4}, {10, 4}}));
  EXPECT_EQ(sheet.legend.size(), 2u);
  EXPECT_EQ(sheet.title, "a");
  EXPECT_EQ(titles(run_sheet({log}, {.curves = {"all"}})).size(), 6u);
}

TEST(RunSheet, SeveralRunsShareThePanels) {
  test::TempFolder folder;
  RunLog a = read_run_log(write_run(folder / "a", 10));
  RunLog b = read_run_log(write_run(folder / "b", 20));
  a.stage_starts = {4};
  b.stage_starts = {4};
  ChartSheet sheet = run_sheet({a, b}, {.curves = {"loss"}});
  ASSERT_EQ(sheet.panels.size(), 1u);
  ASSERT_EQ(sheet.panels[0].series.size(), 2u);
  EXPECT_NE(sheet.panels[0].series[0].stroke.ink, sheet.panels[0].series[1].stroke.ink);
  EXPECT_EQ(sheet.legend[1].text, "b");
  EXPECT_EQ(sheet.marks.size(), 1u) << "common stages are marked once";
  b.stage_starts = {6};
  EXPECT_EQ(run_sheet({a, b}, {}).marks.size(), 2u);
}

TEST(RunSheet, SmoothingCutsAndScales) {
  test::TempFolder folder;
  RunLog log = read_run_log(write_run(folder / "a", 10));
  ChartSheet sheet = run_sheet(
      {log}, {.curves = {"loss", "lr"}, .log_curves = {"loss"}, .smooth = 0.5, .from = 3, .to = 7});
  ASSERT_EQ(sheet.panels[0].series.size(), 2u) << "raw behind smoothed";
  EXPECT_EQ(sheet.panels[0].series[0].points.size(), 5u);
  EXPECT_EQ(sheet.panels[0].series[0].points[0], cv::Point2d(3, 10.0 / 3));
  // 10, 5, 10/3 with weights 1/4, 1/2, 1.
  EXPECT_NEAR(sheet.panels[0].series[1].points[0].y, (2.5 + 2.5 + 10.0 / 3) / 1.75, 1e-12);
  EXPECT_TRUE(sheet.panels[0].log_y);
  EXPECT_FALSE(sheet.panels[1].log_y);
  EXPECT_EQ(sheet.panels[1].series.size(), 1u) << "the rate is not smoothed";
}

TEST(RunSheet, UnknownCurvesAreNamed) {
  test::TempFolder folder;
  RunLog log = read_run_log(write_run(folder / "a", 2));
  auto message = test::error_of(ErrorKind::kUsage, [&] {
    run_sheet({log}, {.curves = {"loss", "epee"}});
  });
  EXPECT_NE(message.find("'epee'"), std::string::npos);
  EXPECT_NE(message.find("loss, epe"), std::string::npos);
  test::error_of(ErrorKind::kUsage, [&] { run_sheet({log}, {.log_curves = {"nope"}}); });
  test::error_of(ErrorKind::kUsage, [&] { run_sheet({}, {}); });
}

}  // namespace
}  // namespace nmrf
