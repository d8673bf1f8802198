// Results for other tools: --export, nmrf asp, nmrf view.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "cli/run.h"
#include "core/file.h"
#include "nmrf/disparity.h"

namespace nmrf::test {
namespace {

using Names = std::vector<std::string>;

class Exports : public testing::Test {
 protected:
  void SetUp() override { put_pair(folder_ / "l.png", folder_ / "r.png"); }
  std::string path(const std::string& name) const { return folder_ / name; }
  Outcome run(std::vector<std::string> more) {
    std::vector<std::string> line{path("l.png"), path("r.png"), "-o",    path("out/"),  "--focal",
                                  "80",          "--baseline",  "0.125", "--no-picture"};
    line.insert(line.end(), more.begin(), more.end());
    return match(line);
  }
  TempFolder folder_;
};

TEST_F(Exports, EveryForm) {
  const Outcome done = run({"--export", "pcd,obj,glb,colmap,tum,ros", "--normals", "--voxel",
                            "0.02", "--outliers", "2", "--depth-format", "npy", "--json"});
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(names_in(path("out")),
            (Names{"colmap", "l_cloud.pcd", "l_cloud.ply", "l_depth.npy", "l_disparity.pfm",
                   "l_mesh.glb", "l_mesh.mtl", "l_mesh.obj", "l_mesh_texture.png", "ros", "tum"}));
  EXPECT_EQ(names_in(path("out/ros")), (Names{"l_depth.png", "left.yaml", "right.yaml"}));
  for (const auto& file : json_lines(done.out).at(0)["files"])
    EXPECT_TRUE(fs::exists(file.get<std::string>())) << file;

  const FloatMap depth = read_disparity(path("out/l_depth.npy"));
  const std::string colmap = read_file(path("out/colmap/stereo/depth_maps/l.png.geometric.bin"));
  const std::string header =
      std::to_string(depth.width()) + "&" + std::to_string(depth.height()) + "&1&";
  ASSERT_TRUE(colmap.starts_with(header));
  ASSERT_EQ(colmap.size(), header.size() + 4 * depth.size());
  for (std::size_t i = 0; i < depth.size(); ++i) {
    float z;
    std::memcpy(&z, colmap.data() + header.size() + 4 * i, 4);
    const float own = depth.data()[i];
    ASSERT_EQ(z, std::isfinite(own) ? own : 0);
  }
  EXPECT_EQ(read_file(path("out/tum/depth.txt")),
            "# timestamp filename; metres = value / 5000\n0.000000 depth/0.000000.png\n");
  const FloatMap tum = read_disparity(path("out/tum/depth/0.000000.png"), {.divisor = 5000});
  for (std::size_t i = 0; i < depth.size(); ++i)
    if (std::isfinite(depth.data()[i]) && depth.data()[i] < 13) {
      ASSERT_NEAR(tum.data()[i], depth.data()[i], 1.01e-4);
    }
  const std::string right = read_file(path("out/ros/right.yaml"));
  EXPECT_TRUE(contains(right, "projection_matrix:\n  rows: 3\n  cols: 4\n  data: [80, 0, "));
  EXPECT_TRUE(contains(right, ", -10, 0, 80, "));
  EXPECT_TRUE(contains(read_file(path("out/l_cloud.ply")).substr(0, 400), "property float nx\n"));
}

TEST_F(Exports, ThinningAndConfidenceLeaveFewer) {
  auto points = [&](const std::vector<std::string>& more) {
    std::vector<std::string> line{"--json"};
    line.insert(line.end(), more.begin(), more.end());
    const Outcome done = run(line);
    EXPECT_EQ(done.code, 0) << done.err;
    return json_lines(done.out).at(0)["points"].get<int>();
  };
  const int all = points({});
  EXPECT_LT(points({"--voxel", "0.05"}), all);
  EXPECT_LT(points({"--min-confidence", "0.3"}), all);
  EXPECT_LT(points({"--outliers", "1"}), all);
}

TEST_F(Exports, Mistakes) {
  EXPECT_EQ(run({"--export", "stl"}).code, 2);
  EXPECT_EQ(run({"--voxel", "-1"}).code, 2);
  EXPECT_EQ(run({"--min-confidence", "2"}).code, 2);
  EXPECT_EQ(run({"--cut", "0"}).code, 2);
  const Outcome bare = match({path("l.png"), path("r.png"), "-o", path("o/"), "--export", "pcd"});
  EXPECT_EQ(bare.code, 2);
  EXPECT_TRUE(contains(bare.err, "--calib")) << bare.err;
}

// Grey levels of any range, NaN in and out.
TEST_F(Exports, AmesStereoPipeline) {
  const std::string model = NMRF_SOURCE_DIR "/models/nmrf-fast.safetensors";
  const Image l = read_image(path("l.png")), r = read_image(path("r.png"));
  FloatMap left(l.width(), l.height()), right = left;
  for (int y = 0; y < l.height(); ++y)
    for (int x = 0; x < l.width(); ++x) {
      left.at(y, x) = 0.001f * static_cast<float>(l.row(y)[3 * x + 1]) - 0.1f;
      right.at(y, x) = 0.001f * static_cast<float>(r.row(y)[3 * x + 1]) - 0.1f;
    }
  for (int x = 0; x < 40; ++x) left.at(20, x) = kInvalidDisparity;
  write_disparity(path("l.tif"), left);
  write_disparity(path("r.tif"), right);
  Outcome done = nmrf({"asp", path("l.tif"), path("r.tif"), path("d.tif"), "-m", model});
  ASSERT_EQ(done.code, 0) << done.err;
  const FloatMap d = read_disparity(path("d.tif"));
  ASSERT_TRUE(d.same_size(left));
  for (int x = 0; x < 40; ++x) EXPECT_FALSE(std::isfinite(d.at(20, x)));
  const std::string bytes = read_file(path("d.tif"));
  const float nan = std::nanf("");
  EXPECT_TRUE(contains(bytes, std::string(reinterpret_cast<const char*>(&nan), 4)));
  int known = 0;
  for (float value : d) known += std::isfinite(value);
  EXPECT_GT(known, static_cast<int>(d.size()) / 3);
  // Disparities count from another place, and with the other sign.
  done = nmrf({"asp", path("l.tif"), path("r.tif"), path("m.tif"), "-m", model, "--min-disp", "-16",
               "--sign", "-1"});
  ASSERT_EQ(done.code, 0) << done.err;
  const FloatMap moved = read_disparity(path("m.tif"));
  int alike = 0, both = 0;
  for (std::size_t i = 0; i < d.size(); ++i)
    if (std::isfinite(d.data()[i]) && std::isfinite(moved.data()[i])) {
      ++both;
      alike += std::abs(d.data()[i] + moved.data()[i]) < 1;
    }
  EXPECT_GT(alike, 0.8 * both);
  EXPECT_GT(both, static_cast<int>(d.size()) / 4);
  EXPECT_EQ(nmrf({"asp", path("l.tif"), path("none.tif"), path("d.tif")}).code, 3);
  EXPECT_EQ(nmrf({"asp", path("l.tif")}).code, 2);
}

TEST_F(Exports, NegativeDisparities) {
  const auto [left, right] = made_pair(3, kWidth, kHeight, -9);
  write_image(path("nl.png"), left);
  write_image(path("nr.png"), right);
  const std::vector<std::string> line{
      "match",      path("nl.png"), path("nr.png"), "--min-disp", "-16",
      "--max-disp", "64",           "--json",       "--focal",    "100",
      "--baseline", "0.1",          "--doffs",      "40",         "-o"};
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), line.begin(), line.end());
    return nmrf(more);
  };
  const Outcome done = with({path("n.pfm")});
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_FALSE(contains(done.err, "swapped")) << done.err;
  const auto report = json_lines(done.out).at(0);
  EXPECT_NEAR(report["disparity"]["median"].get<double>(), -9, 0.5);
  EXPECT_NEAR(report["depth_m"]["median"].get<double>(), 100 * 0.1 / (40 - 9), 0.01);
  EXPECT_GT(report["points"].get<int>(), kWidth * kHeight / 2);
  const Outcome refused = with({path("n.png")});
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(contains(refused.err, "negative disparities")) << refused.err;
  EXPECT_EQ(with({path("n/"), "--format", "png"}).code, 2);
}

TEST_F(Exports, PagesForABrowser) {
  ASSERT_EQ(run({"--confidence", "--mask", "--page"}).code, 0);
  const std::string at_once = read_file(path("out/l_view.html"));
  EXPECT_TRUE(contains(at_once, "createViewer(document.getElementById('viewer'))"));
  EXPECT_TRUE(contains(at_once, "\"calibration\":{"));
  EXPECT_TRUE(contains(at_once, "\"confidence\":\""));
  // Nothing is fetched from anywhere.
  for (const char* address : {"src=\"", "href=\"", "\nimport ", "https://"})
    EXPECT_FALSE(contains(at_once, address)) << address;
  fs::remove(path("out/l_view.html"));
  Outcome done = nmrf({"view", path("out"), "--left", path("l.png")});
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(done.out, path("out/l_view.html") + "\n");
  const std::string later = read_file(path("out/l_view.html"));
  EXPECT_FALSE(contains(later, "\"calibration\":{"));
  auto map_of = [](const std::string& page) {
    const std::size_t begin = page.find("\"map\":\"");
    return page.substr(begin, page.find('"', begin + 8) - begin);
  };
  EXPECT_EQ(map_of(at_once), map_of(later));
  done = nmrf({"view", path("out/ros")});
  EXPECT_EQ(done.code, 3);
  EXPECT_EQ(nmrf({"view", path("l.png/none")}).code, 3);
}

// In headless Chromium, without a network: the viewer starts and shows the map.
TEST_F(Exports, PagesOpenInABrowser) {
  if (std::system("command -v chromium > /dev/null 2>&1") != 0)
    GTEST_SKIP() << "skipped: there is no chromium";
  ASSERT_EQ(run({"--confidence", "--mask", "--page"}).code, 0);
  const std::string line =
      "timeout 60 chromium --headless=new --no-sandbox --disable-gpu --user-data-dir=" +
      path("profile") + " --virtual-time-budget=4000 --dump-dom file://" + path("out/l_view.html") +
      " > " + path("dom.html") + " 2> /dev/null";
  ASSERT_EQ(std::system(line.c_str()), 0);
  const std::string dom = read_file(path("dom.html"));
  EXPECT_TRUE(contains(dom, "data-ready=\"yes\"")) << dom.substr(0, 2000);
  EXPECT_TRUE(contains(dom, "class=\"nv-map\""));
}

}  // namespace
}  // namespace nmrf::test
