// What nmrf hands over to nmrf-train: GPUs, plain operators, comparisons, superpixels.
#include <gtest/gtest.h>

#include "cli/run.h"
#include "core/file.h"
#include "nmrf/version.h"

namespace nmrf::test {
namespace {

using nlohmann::json;

class Libtorch : public testing::Test {
 protected:
  void SetUp() override { put_pair(folder_ / "l.png", folder_ / "r.png"); }
  std::vector<std::string> line(const std::string& out, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {folder_ / "l.png", folder_ / "r.png", "-o", folder_ / out});
    return match_line(more);
  }
  TempFolder folder_;
};

TEST_F(Libtorch, VersionNamesWhatItStandsOn) {
  const Outcome run = nmrf({"--version"}, {.program = NMRF_TRAIN_COMMAND});
  EXPECT_EQ(run.code, 0);
  for (const std::string word : {"nmrf-train " NMRF_VERSION, "libtorch", "OpenCV"})
    EXPECT_TRUE(contains(run.out, word)) << run.out;
}

TEST_F(Libtorch, NoSuchDevice) {
  const Outcome run = nmrf(line("d.pfm", {"--device", "cuda:99"}));
  EXPECT_EQ(run.code, 5);
  EXPECT_TRUE(contains(run.err, "cuda:99")) << run.err;
  EXPECT_FALSE(fs::exists(folder_ / "d.pfm"));
}

TEST_F(Libtorch, PlainOperatorsGiveTheSameMap) {
  ASSERT_EQ(nmrf(line("runtime.pfm", {"--scale", "1", "--precision", "float32"})).code, 0);
  const Outcome plain =
      nmrf(line("plain.pfm", {"--scale", "1"}), {.environment = {"NMRF_PLAIN=1"}});
  ASSERT_EQ(plain.code, 0) << plain.err;
  EXPECT_LT(largest_difference(read_disparity(folder_ / "runtime.pfm"),
                               read_disparity(folder_ / "plain.pfm")),
            5e-3);
}

TEST_F(Libtorch, BenchComparesTheThreeWays) {
  const Outcome run = nmrf(
      {"bench", "--preset", "fast", "--size", "96x64", "--runs", "2", "--compare", "--json", "-q"});
  ASSERT_EQ(run.code, 0) << run.err;
  const json object = json_lines(run.out).at(0);
  for (const char* way : {"fast", "plain"}) {
    EXPECT_GT(object[way]["seconds"]["median"].get<double>(), 0);
    EXPECT_LT(object[way]["difference"]["median_px"].get<double>(), 1e-2);
  }
}

TEST_F(Libtorch, ATrainingStepGivesTheSameLossAndGradientsOnBothPaths) {
  Outcome run = nmrf({"bench", "--preset", "fast", "--size", "96x64", "--batch", "2", "--runs", "1",
                      "--train", "--compare"});
  ASSERT_EQ(run.code, 0) << run.err;
  for (const char* word : {"training step", "losses", "backward", "update", "fast over plain"})
    EXPECT_NE(run.out.find(word), std::string::npos) << word << "\n" << run.out;
  run = nmrf({"bench", "--preset", "fast", "--size", "96x64", "--runs", "1", "--train", "--compare",
              "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const json difference = json::parse(run.out)["plain"]["difference"];
  EXPECT_LT(difference["loss"].get<double>(), 1e-3);
  EXPECT_LT(difference["gradient_norm"].get<double>(), 1e-2);
}

// Superpixels, by which the recall of labels is measured, are in nmrf-train.
TEST_F(Libtorch, AblationsSideBySide) {
  write_disparity(folder_ / "d.pfm", FloatMap(kWidth, kHeight, 12));
  write_file(folder_ / "list.txt", "l.png r.png d.pfm\n");
  const Outcome run = nmrf({"eval", "--model", "formula:fast", "--max-disp", "64", "--list",
                            folder_ / "list.txt", "--ablate", "--report", folder_ / "report"});
  ASSERT_EQ(run.code, 0) << run.err;
  for (const std::string part :
       {"k=1", "k=2", "k=6", "no self edges", "shared self edges", "no refinement", "labels 3px",
        "seeds 16px", "time [s]", "winner's p"})
    EXPECT_TRUE(contains(run.out, part)) << part << " in " << run.out;
  const std::string page = read_file(folder_ / "report/index.html");
  EXPECT_TRUE(contains(page, "data:image/png;base64,"));
  EXPECT_TRUE(contains(page, "best candidate label"));
}

}  // namespace
}  // namespace nmrf::test
