// nmrf plot from outside.
#include <gtest/gtest.h>

#include "cli/run.h"
#include "core/file.h"

namespace nmrf::test {
namespace {

fs::path put_run(const fs::path& folder) {
  fs::create_directories(folder);
  std::string log;
  for (int step = 1; step <= 30; ++step)
    log += nlohmann::json({{"step", step}, {"loss", 3.0 / step}, {"lr", 1e-4}}).dump() + "\n";
  write_file(folder / "log.jsonl", log);
  write_file(folder / "config.toml", "[stage1]\nsteps = 10\n[stage2]\nsteps = 20\n");
  return folder;
}

TEST(Plot, PngAndSvg) {
  TempFolder folder;
  const std::string run = put_run(folder / "run"), other = put_run(folder / "other");
  const Outcome png = nmrf({"plot", run});
  ASSERT_EQ(png.code, 0) << png.err;
  EXPECT_EQ(png.out, run + "/curves.png\n");
  EXPECT_EQ(read_image(folder / "run/curves.png").width(), 1280);
  const Outcome svg = nmrf({"plot", run, other, "-o", folder / "c.svg", "--smooth", "0.5", "--log",
                            "loss", "--size", "800x500"});
  ASSERT_EQ(svg.code, 0) << svg.err;
  const std::string text = read_file(folder / "c.svg");
  EXPECT_TRUE(contains(text, "width=\"800\" height=\"500\""));
  for (const std::string part : {">run<", ">other<", ">loss<", ">learning rate<", ">updates<"})
    EXPECT_TRUE(contains(text, part)) << part;
}

TEST(Plot, Mistakes) {
  TempFolder folder;
  const std::string run = put_run(folder / "run");
  EXPECT_EQ(nmrf({"plot"}).code, 2);
  EXPECT_EQ(nmrf({"plot", folder / "none"}).code, 3);
  EXPECT_EQ(nmrf({"plot", run, "-o", folder / "c.jpg"}).code, 2);
  EXPECT_EQ(nmrf({"plot", run, "--curves", "lozz"}).code, 2);
  EXPECT_EQ(nmrf({"plot", run, "--size", "10"}).code, 2);
  EXPECT_EQ(nmrf({"plot", run, "--smooth", "1"}).code, 2);
  EXPECT_EQ(nmrf({"plot", run, "--from", "100"}).code, 3);
}

}  // namespace
}  // namespace nmrf::test
