// nmrf match on many pairs: folders, patterns, lists; failures in the middle; interruption.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "cli/run.h"
#include "core/file.h"

namespace nmrf::test {
namespace {

using Names = std::vector<std::string>;

class Batch : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }
  // left/0.png ..., right/0.png ...
  void put_folders(int count) {
    for (int i = 0; i < count; ++i)
      put_pair(folder_ / fmt::format("left/{}.png", i), folder_ / fmt::format("right/{}.png", i),
               i + 1);
  }
  TempFolder folder_;
};

TEST_F(Batch, Folders) {
  put_folders(3);
  const Outcome run = match({path("left"), path("right"), "-o", path("out/"), "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(names_in(path("out")), (Names{"0_disparity.pfm", "0_vis.png", "1_disparity.pfm",
                                          "1_vis.png", "2_disparity.pfm", "2_vis.png"}));
  const auto lines = json_lines(run.out);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[2]["left"], path("left/2.png"));
  // A batch gives what single runs give.
  ASSERT_EQ(match({path("left/1.png"), path("right/1.png"), "-o", path("one.pfm")}).code, 0);
  EXPECT_EQ(read_file(path("one.pfm")), read_file(path("out/1_disparity.pfm")));
  // No animation: stderr is no terminal.
  EXPECT_EQ(run.err.find('\r'), std::string::npos) << run.err;
  EXPECT_EQ(run.err.find('\033'), std::string::npos) << run.err;
}

TEST_F(Batch, ProgressAndColourOnATerminal) {
  put_folders(2);
  const std::vector<std::string> arguments{path("left"), path("right"), "-o", path("out/")};
  const Outcome run = match(arguments, {.terminal = true});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(contains(run.err, "pair 2/2")) << run.err;
  EXPECT_TRUE(contains(run.err, "\033[33mwarning")) << run.err;
  const Outcome plain = match(arguments, {.environment = {"NO_COLOR=1"}, .terminal = true});
  EXPECT_FALSE(contains(plain.err, "\033[33m")) << plain.err;
  EXPECT_FALSE(contains(run.out, "\033")) << run.out;
}

TEST_F(Batch, Patterns) {
  put_pair(folder_ / "a_left.png", folder_ / "a_right.png", 1);
  put_pair(folder_ / "b_left.png", folder_ / "b_right.png", 2);
  const Outcome run =
      match({path("*_left.png"), path("*_right.png"), "-o", path("out"), "--no-picture"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(names_in(path("out")), (Names{"a_left_disparity.pfm", "b_left_disparity.pfm"}));
}

TEST_F(Batch, ListFile) {
  put_pair(folder_ / "x/l.png", folder_ / "x/r.png", 1);
  put_pair(folder_ / "y/l.png", folder_ / "y/r.png", 2);
  write_file(folder_ / "x/pairs.txt", "# two\nl.png r.png\n../y/l.png ../y/r.png\n");
  ASSERT_EQ(match({"--list", path("x/pairs.txt"), "-o", path("out/"), "--no-picture"}).code, 0);
  EXPECT_EQ(names_in(path("out")), (Names{"x_l_disparity.pfm", "y_l_disparity.pfm"}));
  write_file(folder_ / "pairs.txt", "l.png r.png\n");
  ASSERT_EQ(match({"--list", path("pairs.txt"), "--root", path("y"), "-o", path("one.npy")}).code,
            0);
  EXPECT_EQ(read_disparity(path("one.npy")), read_disparity(path("out/y_l_disparity.pfm")));
}

TEST_F(Batch, SharedByProcesses) {
  put_folders(3);
  auto share = [&](const char* rank, const std::string& out) {
    return match({path("left"), path("right"), "-o", out, "--no-picture"},
                 {.environment = {std::string("RANK=") + rank, "WORLD_SIZE=2"}})
        .code;
  };
  ASSERT_EQ(share("0", path("zero/")), 0);
  ASSERT_EQ(share("1", path("one/")), 0);
  EXPECT_EQ(names_in(path("zero")), (Names{"0_disparity.pfm", "2_disparity.pfm"}));
  EXPECT_EQ(names_in(path("one")), Names{"1_disparity.pfm"});
  EXPECT_EQ(share("2", path("none/")), 2);
  EXPECT_EQ(share("1", path("one.pfm")), 2) << "one file for many pairs";
}

TEST_F(Batch, SideBySidePicture) {
  put_pair(folder_ / "l.png", folder_ / "r.png");
  write_image(path("both.png"), beside(read_image(path("l.png")), read_image(path("r.png"))));
  ASSERT_EQ(match({path("both.png"), "--side-by-side", "-o", path("a.pfm")}).code, 0);
  ASSERT_EQ(match({path("l.png"), path("r.png"), "-o", path("b.pfm")}).code, 0);
  EXPECT_EQ(read_file(path("a.pfm")), read_file(path("b.pfm")));
}

TEST_F(Batch, ColourRangeStaysOverASequence) {
  put_folders(1);
  // The same pair twice after a first one that sets the range.
  put_pair(folder_ / "left/1.png", folder_ / "right/1.png", 7);
  fs::copy_file(path("left/1.png"), path("left/2.png"));
  fs::copy_file(path("right/1.png"), path("right/2.png"));
  ASSERT_EQ(match({path("left"), path("right"), "-o", path("out/")}).code, 0);
  ASSERT_EQ(match({path("left/1.png"), path("right/1.png"), "-o", path("alone/")}).code, 0);
  EXPECT_EQ(read_file(path("out/1_vis.png")), read_file(path("out/2_vis.png")));
  EXPECT_NE(read_file(path("out/1_vis.png")), read_file(path("alone/1_vis.png")));
  ASSERT_EQ(match({path("left"), path("right"), "-o", path("each/"), "--range", "each"}).code, 0);
  EXPECT_EQ(read_file(path("each/1_vis.png")), read_file(path("alone/1_vis.png")));
}

TEST_F(Batch, GoesOnAfterBadPairs) {
  put_folders(5);
  write_file(path("right/1.png"), "this is no picture");
  put_pair(folder_ / "left/3.png", folder_ / "other.png", 4, 48, 48);  // not the right one's size
  const Outcome run = match({path("left"), path("right"), "-o", path("out/"), "--json"});
  EXPECT_EQ(run.code, 3);
  EXPECT_TRUE(contains(
      run.err, "2 of 5 pairs failed:\n  " + path("left/1.png") + "\n  " + path("left/3.png")))
      << run.err;
  EXPECT_TRUE(contains(run.err, path("right/1.png"))) << run.err;
  EXPECT_TRUE(contains(run.err, "48 x 48")) << run.err;
  EXPECT_EQ(names_in(path("out")), (Names{"0_disparity.pfm", "0_vis.png", "2_disparity.pfm",
                                          "2_vis.png", "4_disparity.pfm", "4_vis.png"}));
  const auto lines = json_lines(run.out);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_TRUE(lines[1].contains("error"));
  EXPECT_FALSE(lines[2].contains("error"));
  EXPECT_TRUE(contains(lines[3]["error"], path("left/3.png")));
}

TEST_F(Batch, TooSmallPicturesAreNamed) {
  put_folders(2);
  put_pair(folder_ / "left/1.png", folder_ / "right/1.png", 4, 40, 24);
  const Outcome run = match({path("left"), path("right"), "-o", path("out/")});
  EXPECT_EQ(run.code, 3);
  EXPECT_TRUE(contains(run.err, path("left/1.png") + ": the images to match are 40x24; at least"))
      << run.err;
  EXPECT_TRUE(fs::exists(path("out/0_disparity.pfm")));
}

TEST_F(Batch, FoldersThatDoNotFit) {
  put_folders(2);
  fs::remove(path("right/1.png"));
  const Outcome run = match({path("left"), path("right"), "-o", path("out/")});
  EXPECT_EQ(run.code, 3);
  EXPECT_TRUE(contains(run.err, path("left/1.png"))) << run.err;
  EXPECT_FALSE(fs::exists(path("out"))) << "nothing is made for a run that cannot start";
}

TEST_F(Batch, InterruptionLeavesWholeFiles) {
  put_folders(60);
  Process process({"match", path("left"), path("right"), "-o", path("out/"), "--model",
                   "formula:fast", "--max-disp", "64"});
  const auto start = std::chrono::steady_clock::now();
  while (process.running() && names_in(path("out")).size() < 3 &&
         std::chrono::steady_clock::now() - start < std::chrono::seconds(120))
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ASSERT_TRUE(process.running());
  process.signal(SIGINT);
  const Outcome run = process.wait();
  EXPECT_EQ(run.code, 130);
  EXPECT_TRUE(contains(run.err, "interrupted after")) << run.err;
  const auto names = names_in(path("out"));
  EXPECT_GE(names.size(), 2u);
  EXPECT_LT(names.size(), 120u);
  EXPECT_EQ(names.size() % 2, 0u) << "the pair at hand is finished";
  for (const auto& name : names) {
    SCOPED_TRACE(name);
    if (fs::path(name).extension() == ".pfm")
      expect_good_map(read_disparity(path("out/" + name)));
    else
      EXPECT_EQ(read_image(path("out/" + name)).width(), kWidth);
  }
}

}  // namespace
}  // namespace nmrf::test
