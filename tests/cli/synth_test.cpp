// nmrf synth from outside.
#include <gtest/gtest.h>

#include "cli/run.h"
#include "core/file.h"

namespace nmrf::test {
namespace {

TEST(Synth, StatisticsBesideThoseOfAList) {
  TempFolder folder;
  const Outcome written = nmrf({"synth", folder / "tree", "--pairs", "2", "--size", "96x64", "-q"});
  ASSERT_EQ(written.code, 0) << written.err;
  const std::string base = folder / "tree/FlyingThings3D/";
  std::string list;
  for (const std::string frame : {"0006", "0007"})
    list += base + "frames_finalpass/TRAIN/A/0000/left/" + frame + ".png " + base +
            "frames_finalpass/TRAIN/A/0000/right/" + frame + ".png " + base +
            "disparity/TRAIN/A/0000/left/" + frame + ".pfm\n";
  write_file(folder / "list.txt", list);
  const Outcome both =
      nmrf({"synth", "--statistics", "2", "--size", "96x64", "--list", folder / "list.txt"});
  ASSERT_EQ(both.code, 0) << both.err;
  EXPECT_TRUE(contains(both.out, "2 rendered"));
  EXPECT_TRUE(contains(both.out, "2 of the list"));
  // The same pairs, in memory and from the files: the same numbers on both sides.
  int rows = 0;
  std::istringstream lines(both.out);
  for (std::string line; std::getline(lines, line);) {
    const auto open = line.find('('), close = line.find(") ");
    if (open == std::string::npos || close == std::string::npos) continue;
    ++rows;
    EXPECT_TRUE(contains(line.substr(close), line.substr(open, close - open + 1))) << line;
  }
  EXPECT_EQ(rows, 9);
}

TEST(Synth, Mistakes) {
  TempFolder folder;
  const Outcome alone = nmrf({"synth", folder / "tree", "--list", "mine.txt"});
  EXPECT_EQ(alone.code, 2);
  EXPECT_TRUE(contains(alone.err, "--statistics")) << alone.err;
  EXPECT_EQ(nmrf({"synth"}).code, 2);
  const Outcome negative = nmrf({"synth", folder / "tree", "--max-disp", "-4"});
  EXPECT_EQ(negative.code, 2);
  EXPECT_TRUE(contains(negative.err, "--max-disp: -4 is below 0")) << negative.err;
  EXPECT_EQ(nmrf({"synth", "--statistics", "0"}).code, 2);
  EXPECT_EQ(nmrf({"synth", "--statistics", "1", "--set", "detail=2"}).code, 2);
  const Outcome missing = nmrf({"synth", "--statistics", "1", "--list", folder / "no.txt"});
  EXPECT_EQ(missing.code, 3);
  EXPECT_TRUE(contains(missing.err, "no.txt")) << missing.err;
}

}  // namespace
}  // namespace nmrf::test
