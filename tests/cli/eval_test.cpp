// nmrf eval and nmrf submit from outside.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/run.h"
#include "core/file.h"
#include "core/folder_lock.h"
#include "nmrf/disparity.h"

namespace nmrf::test {
namespace {

// A list of pairs whose truth is 12 px everywhere.
fs::path put_list(const fs::path& folder, int pairs) {
  std::string lines;
  for (int i = 0; i < pairs; ++i) {
    const std::string n = std::to_string(i);
    put_pair(folder / ("l" + n + ".png"), folder / ("r" + n + ".png"), 1 + i);
    write_disparity(folder / ("d" + n + ".pfm"), FloatMap(kWidth, kHeight, 12));
    lines += "l" + n + ".png r" + n + ".png d" + n + ".pfm\n";
  }
  write_file(folder / "list.txt", lines);
  return folder / "list.txt";
}

// nmrf eval on the small untrained network.
Outcome eval(std::vector<std::string> arguments, const RunOptions& options = {}) {
  arguments.insert(arguments.begin(), {"eval", "--model", "formula:fast", "--max-disp", "64"});
  return nmrf(arguments, options);
}

TEST(Eval, TableJsonAndCsv) {
  TempFolder folder;
  const auto list = put_list(folder.path(), 2);
  const Outcome run = eval({"--list", list, "--baseline", "sgbm", "--json", folder / "r.json",
                            "--csv", folder / "r.csv"});
  ASSERT_EQ(run.code, 0) << run.err;
  for (const std::string part :
       {"formula:fast", "sgbm", "epe [px]", "Each number is the mean", "definitions",
        "error > 3 px and > 5 % of the truth", "every pixel with known truth"})
    EXPECT_TRUE(contains(run.out, part)) << part << " in " << run.out;
  const auto json = nlohmann::json::parse(read_file(folder / "r.json"));
  const auto& set = json.at("sets").at(0);
  EXPECT_EQ(set["images"], 2);
  // Random dots 12 px apart are what SGBM does best.
  EXPECT_LT(set["summary"]["sgbm"]["all"]["epe"].get<double>(), 1.0);
  EXPECT_GT(set["summary"]["formula:fast"]["all"]["epe"].get<double>(), 1.0);
  EXPECT_EQ(set["per_image"]["sgbm"].size(), 2u);
  EXPECT_EQ(json["run"]["methods"]["formula:fast"]["max_disp"], 64);
  const std::string csv = read_file(folder / "r.csv");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 2 + 4);
}

TEST(Eval, JsonOnStdoutIsAlone) {
  TempFolder folder;
  const Outcome run = nmrf({"eval", "--model", "none", "--baseline", "sgbm", "--list",
                            put_list(folder.path(), 1), "--json", "-"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(nlohmann::json::parse(run.out, nullptr, false).contains("sets")) << run.out;
}

TEST(Eval, GoesOnWhereItStopped) {
  TempFolder folder;
  const auto list = put_list(folder.path(), 3);
  const std::vector<std::string> common{"--list", list, "-o", folder / "out", "--json"};
  auto with = [&](const std::string& file, std::vector<std::string> more) {
    auto arguments = common;
    arguments.push_back(folder / file);
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome run = eval(arguments);
    EXPECT_EQ(run.code, 0) << run.err;
    return nlohmann::json::parse(read_file(folder / file))["sets"][0]["per_image"]["formula:fast"];
  };
  const auto first = with("a.json", {"--limit", "2"});
  const auto second = with("b.json", {});
  ASSERT_EQ(first.size(), 2u);
  ASSERT_EQ(second.size(), 3u);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(first[i], second[i]);  // the time is the same, too
}

TEST(Eval, TwoProcessesShareARun) {
  TempFolder folder;
  const auto list = put_list(folder.path(), 3);
  const std::vector<std::string> arguments{"--list", list, "-o", folder / "out"};
  const Outcome one = eval(arguments, {.environment = {"RANK=1", "WORLD_SIZE=2"}});
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_TRUE(contains(one.err, "rank 1 of 2 has finished its share")) << one.err;
  EXPECT_EQ(one.out, "");
  const Outcome zero = eval(arguments, {.environment = {"RANK=0", "WORLD_SIZE=2"}});
  ASSERT_EQ(zero.code, 0) << zero.err;
  EXPECT_TRUE(contains(zero.out, "3 images")) << zero.out;
  EXPECT_FALSE(contains(zero.out, "still missing")) << zero.out;
  EXPECT_EQ(eval({"--list", list}, {.environment = {"RANK=0", "WORLD_SIZE=2"}}).code, 2);
}

TEST(Eval, AFailedPairIsListed) {
  TempFolder folder;
  const auto list = put_list(folder.path(), 3);
  write_file(folder / "r1.png", "no picture");
  const Outcome run = nmrf({"eval", "--model", "none", "--baseline", "sgbm", "--list", list});
  EXPECT_EQ(run.code, 3);
  EXPECT_TRUE(contains(run.err, "list.txt, sgbm, l1")) << run.err;
  EXPECT_TRUE(contains(run.out, "FAILED l1")) << run.out;
  EXPECT_TRUE(contains(run.out, "epe [px]"));  // the others are evaluated
}

TEST(Eval, TruthWithoutAValidPixel) {
  TempFolder folder;
  const auto list = put_list(folder.path(), 2);
  const std::vector<std::string> line{"eval", "--model", "none", "--baseline",
                                      "sgbm", "--list",  list};
  write_disparity(folder / "d0.pfm", FloatMap(kWidth, kHeight, kInvalidDisparity));
  const Outcome one = nmrf(line);
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_TRUE(contains(one.out, "1 of 2 images have no pixel with valid truth")) << one.out;
  EXPECT_TRUE(contains(one.out, "list-list.txt: 2 images")) << "the list's name, not its folders";
  write_disparity(folder / "d1.pfm", FloatMap(kWidth, kHeight, kInvalidDisparity));
  const Outcome none = nmrf(line);
  EXPECT_EQ(none.code, 3);
  EXPECT_TRUE(contains(none.err, "none of its 2 images has a pixel with valid truth")) << none.err;
}

// Cameras that were turned by known angles: rectified by features, the map is nearly as good.
TEST(Eval, TurnedCameras) {
  const std::string source = NMRF_SOURCE_DIR;
  auto turned = [&](const std::string& seed) {
    const Outcome run = nmrf({"eval", "--model", source + "/models/nmrf-fast.safetensors", "--list",
                              source + "/examples/pair/pair.txt", "--turn", "1.5", "--seed", seed,
                              "--scale", "0.5", "--json", "-"});
    EXPECT_EQ(run.code, 0) << run.err;
    return nlohmann::json::parse(run.out, nullptr, false);
  };
  const auto json = turned("1");
  ASSERT_TRUE(json.is_array());
  const auto pair = json.at(0).at("pairs").at(0);
  ASSERT_FALSE(pair.contains("refused")) << pair;
  EXPECT_GT(pair["matches"], 60);
  EXPECT_GT(pair["vertical_before_px"], 3);
  EXPECT_LT(pair["vertical_px"], 0.5);
  const double before = pair["errors"]["as they were"]["epe"],
               after = pair["errors"]["turned, --rectify auto"]["epe"];
  EXPECT_LT(after, 1.3 * before + 0.3);
  EXPECT_EQ(json, turned("1")) << "repeats exactly";
  EXPECT_NE(json, turned("2"));
  EXPECT_EQ(eval({"--turn", "90", "--list", source + "/examples/pair/pair.txt"}).code, 2);
}

TEST(Eval, Mistakes) {
  TempFolder folder;
  const std::string list = put_list(folder.path(), 1);
  EXPECT_EQ(eval({}).code, 2);
  EXPECT_EQ(eval({"--list", list, "--metrics", "epee"}).code, 2);
  EXPECT_EQ(eval({"--list", list, "--aggregate", "sum"}).code, 2);
  EXPECT_EQ(eval({"-d", "kitti2016", "--root", folder.path()}).code, 2);
  EXPECT_EQ(eval({"-d", "kitti2015", "--root", folder.path()}).code, 3);
  EXPECT_EQ(eval({"--list", folder / "none.txt"}).code, 3);
  EXPECT_EQ(eval({"--protocol", "zero-shot", "--root", folder.path()}).code, 3);
  EXPECT_EQ(nmrf({"eval", "--list", list, "--model", folder / "none.pth"}).code, 4);
  EXPECT_EQ(nmrf({"eval", "--list", list, "--model", "none"}).code, 2);
}

TEST(Submit, ArchiveFromATinyTree) {
  TempFolder folder;
  put_pair(folder / "two_view_testing/lake/im0.png", folder / "two_view_testing/lake/im1.png");
  const std::vector<std::string> arguments{"submit",      "-b",      "eth3d",         "--root",
                                           folder.path(), "--model", "formula:fast",  "--max-disp",
                                           "64",          "-o",      folder / "a.zip"};
  const Outcome incomplete = nmrf(arguments);
  EXPECT_EQ(incomplete.code, 3);
  EXPECT_FALSE(fs::exists(folder / "a.zip"));
  auto partial = arguments;
  partial.push_back("--partial");
  const Outcome run = nmrf(partial);
  ASSERT_EQ(run.code, 0) << run.err;
  const std::string archive = read_file(folder / "a.zip");
  EXPECT_TRUE(archive.starts_with("PK"));
  EXPECT_TRUE(contains(archive, "low_res_two_view/lake.pfm"));
  EXPECT_TRUE(contains(archive, "runtime "));
  EXPECT_FALSE(fs::exists(folder / "a.zip.parts"));
  EXPECT_EQ(nmrf({"submit", "-b", "eth4d", "--root", folder.path()}).code, 2);
}

// A full disk is a failure to write, not a fault of the pairs; nor may two write the same parts.
TEST(Submit, FullDiskAndTwoWriters) {
  TempFolder folder;
  put_pair(folder / "two_view_testing/lake/im0.png", folder / "two_view_testing/lake/im1.png");
  const std::string command = fmt::format(
      "'{}' submit -b eth3d --root '{}' --model formula:fast --max-disp 64 --partial --keep -o "
      "'{}'",
      NMRF_COMMAND, folder.path().string(), (folder / "a.zip").string());
  const Outcome full =
      nmrf({"-c", "trap '' XFSZ; ulimit -f 1; exec " + command}, {.program = "/bin/bash"});
  EXPECT_EQ(full.code, 1) << full.err;
  EXPECT_TRUE(contains(full.err, "lake.pfm: writing failed")) << full.err;
  EXPECT_FALSE(fs::exists(folder / "a.zip"));
  const auto parts = fs::directory_iterator(folder / "a.zip.parts")->path();
  {
    const FolderLock lock(parts, "nmrf submit");
    const Outcome second = nmrf({"-c", "exec " + command}, {.program = "/bin/bash"});
    EXPECT_EQ(second.code, 2);
    EXPECT_TRUE(contains(second.err, "another nmrf submit is writing there")) << second.err;
  }
  EXPECT_EQ(nmrf({"-c", "exec " + command}, {.program = "/bin/bash"}).code, 0);
}

TEST(Bench, BesideSemiGlobalMatching) {
  const Outcome run = nmrf({"bench", "--preset", "fast", "--size", "128x96", "--runs", "1",
                            "--baseline", "sgbm", "--json", "-q"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto object = json_lines(run.out).at(0);
  EXPECT_GT(object["sgbm"]["seconds"]["median"].get<double>(), 0);
  EXPECT_GT(object["sgbm"]["speedup"].get<double>(), 0);
}

}  // namespace
}  // namespace nmrf::test
