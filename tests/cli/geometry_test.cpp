// nmrf match with a calibration: depth maps and point clouds.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cli/run.h"
#include "core/file.h"

namespace nmrf::test {
namespace {

// Focal length, principal point, baseline and doffs of all calibrations below.
constexpr double kF = 80, kCx = 47.25, kCy = 30.5, kBaseline = 0.125, kDoffs = 3;

struct Vertex {
  float x, y, z;
  std::uint8_t red, green, blue;
};

std::vector<Vertex> read_cloud(const fs::path& path) {
  const std::string content = read_file(path);
  const std::string end = "end_header\n";
  const std::size_t header = content.find(end) + end.size();
  std::vector<Vertex> vertices((content.size() - header) / 15);
  EXPECT_EQ(header + 15 * vertices.size(), content.size());
  EXPECT_TRUE(contains(content, fmt::format("element vertex {}\n", vertices.size())));
  for (std::size_t i = 0; i < vertices.size(); ++i)
    std::memcpy(static_cast<void*>(&vertices[i]), content.data() + header + 15 * i, 15);
  return vertices;
}

class MatchDepth : public testing::Test {
 protected:
  void SetUp() override { put_pair(folder_ / "l.png", folder_ / "r.png"); }
  std::string path(const std::string& name) const { return folder_ / name; }
  std::vector<std::string> line(const std::vector<std::string>& more, const std::string& out) {
    std::vector<std::string> arguments{path("l.png"), path("r.png"),  "-o",
                                       path(out),     "--no-picture", "--keep-filled"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return match_line(arguments);
  }
  Outcome run(const std::vector<std::string>& more, const std::string& out = "d.pfm") {
    return nmrf(line(more, out));
  }
  // The depth map (metres, npy) against B f / (d + doffs).
  void expect_depth(const std::string& stem, double f, double doffs) {
    const FloatMap disparity = read_disparity(path(stem + ".pfm"));
    const FloatMap depth = read_disparity(path(stem + "_depth.npy"));
    ASSERT_TRUE(depth.same_size(disparity));
    for (int y = 0; y < depth.height(); ++y)
      for (int x = 0; x < depth.width(); ++x) {
        const double z = kBaseline * f / (disparity.at(y, x) + doffs);
        if (std::isinf(z) && std::isinf(depth.at(y, x))) continue;
        ASSERT_NEAR(depth.at(y, x), z, 1e-5 * z);
      }
  }
  TempFolder folder_;
};

TEST_F(MatchDepth, EveryCalibrationKind) {
  const std::string matrix = fmt::format("{} 0 {} 0 {} {} 0 0 1", kF, kCx, kF, kCy);
  const double right_cx = kCx + kDoffs;
  const std::string left_p = fmt::format("{} 0 {} 0 0 {} {} 0 0 0 1 0", kF, kCx, kF, kCy);
  const std::string right_p =
      fmt::format("{} 0 {} {} 0 {} {} 0 0 0 1 0", kF, right_cx, -kF * kBaseline, kF, kCy);
  const std::string q = fmt::format("1, 0, 0, {}, 0, 1, 0, {}, 0, 0, 0, {}, 0, 0, {}, {}", -kCx,
                                    -kCy, kF, 1 / kBaseline, kDoffs / kBaseline);
  struct Kind {
    std::string file, content, recognised;
    double doffs;
  };
  const std::vector<Kind> kinds{
      {"calib.txt",
       fmt::format("cam0=[{0} 0 {1}; 0 {0} {2}; 0 0 1]\ncam1=[{0} 0 {3}; 0 {0} {2}; 0 0 1]\n"
                   "doffs={4}\nbaseline={5}\nwidth={6}\nheight={7}\nndisp=64\n",
                   kF, kCx, kCy, right_cx, kDoffs, 1000 * kBaseline, kWidth, kHeight),
       "Middlebury", kDoffs},
      {"cam_to_cam.txt",
       fmt::format("calib_time: 09-Jan-2012\nS_rect_02: {} {}\nP_rect_02: {}\nP_rect_03: {}\n",
                   kWidth, kHeight, left_p, right_p),
       "KITTI", kDoffs},
      {"object.txt", fmt::format("P2: {}\nP3: {}\n", left_p, right_p), "KITTI", kDoffs},
      {"stereo.yml",
       fmt::format("%YAML:1.0\n---\nQ: !!opencv-matrix\n   rows: 4\n   cols: 4\n   dt: d\n"
                   "   data: [ {} ]\n",
                   q),
       "OpenCV", kDoffs},
      {"stereo.xml",
       fmt::format("<?xml version=\"1.0\"?>\n<opencv_storage>\n<Q type_id=\"opencv-matrix\">\n"
                   "<rows>4</rows><cols>4</cols><dt>d</dt>\n<data>{}</data></Q>\n"
                   "</opencv_storage>\n",
                   q),
       "OpenCV", kDoffs},
      {"K.txt", fmt::format("{}\n{}\n", matrix, kBaseline), "K.txt", 0},
      {"demo.json",
       fmt::format(R"({{"width": {}, "height": {}, "fx": {}, "fy": {}, "cx0": {}, "cx1": {},
                       "cy": {}, "baseline_meters": {}, "depth_range": [1, 20]}})",
                   kWidth, kHeight, kF, kF, kCx, right_cx, kCy, kBaseline),
       "stereodemo", kDoffs},
  };
  std::vector<std::vector<std::string>> lines;
  for (const auto& kind : kinds) {
    write_file(path(kind.file), kind.content);
    lines.push_back(
        line({"--calib", path(kind.file), "--depth-format", "npy", "--json"}, kind.file + ".pfm"));
  }
  const auto results = nmrf_all(lines);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const Kind& kind = kinds[i];
    const Outcome& result = results[i];
    SCOPED_TRACE(kind.file);
    ASSERT_EQ(result.code, 0) << result.err;
    const auto line = json_lines(result.out).at(0);
    EXPECT_NEAR(line["calibration"]["focal_px"].get<double>(), kF, 1e-9);
    EXPECT_NEAR(line["calibration"]["baseline_m"].get<double>(), kBaseline, 1e-9);
    EXPECT_NEAR(line["calibration"]["doffs_px"].get<double>(), kind.doffs, 1e-9);
    EXPECT_TRUE(contains(result.err, "f = 80.00 px, baseline = 0.1250 m")) << result.err;
    EXPECT_TRUE(contains(result.err, kind.recognised)) << result.err;
    EXPECT_TRUE(contains(result.err, "depth ")) << result.err;
    expect_depth(kind.file, kF, kind.doffs);
  }
}

TEST_F(MatchDepth, NumbersByHandAndPoints) {
  const Outcome result = run({"--focal", "80", "--baseline", "0.125", "--doffs", "3", "--cx",
                              "47.25", "--cy", "30.5", "--depth-format", "npy", "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  expect_depth("d", kF, kDoffs);
  const auto cloud = read_cloud(path("d_cloud.ply"));
  const FloatMap disparity = read_disparity(path("d.pfm"));
  const FloatMap depth = read_disparity(path("d_depth.npy"));
  const Image image = read_image(path("l.png"));
  ASSERT_EQ(cloud.size(), disparity.size()) << "every pixel is valid here";
  EXPECT_EQ(json_lines(result.out).at(0)["points"], cloud.size());
  for (int y = 0; y < kHeight; y += 7)
    for (int x = 0; x < kWidth; x += 5) {
      const Vertex& v = cloud[static_cast<std::size_t>(y * kWidth + x)];
      const double z = depth.at(y, x);
      EXPECT_NEAR(v.z, z, 1e-5 * z);
      EXPECT_NEAR(v.x, (x - kCx) * z / kF, 1e-4 * z);
      EXPECT_NEAR(v.y, (y - kCy) * z / kF, 1e-4 * z);
      const auto* rgb = image.row(y) + 3 * x;
      EXPECT_TRUE(v.red == rgb[0] && v.green == rgb[1] && v.blue == rgb[2]);
    }
}

TEST_F(MatchDepth, FormatsAndFilters) {
  const std::vector<std::string> camera{"--focal", "80", "--baseline", "0.125"};
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), camera.begin(), camera.end());
    const Outcome result = run(more);
    ASSERT_EQ(result.code, 0) << result.err;
  };
  with({"--depth-format", "npy"});
  const FloatMap metres = read_disparity(path("d_depth.npy"));
  const std::size_t all = read_cloud(path("d_cloud.ply")).size();
  with({"--depth-format", "tiff"});
  EXPECT_EQ(read_disparity(path("d_depth.tiff")), metres);
  with({"--depth-format", "png", "--no-cloud"});
  const Image millimetres = read_image(path("d_depth.png"));
  ASSERT_EQ(millimetres.bits(), 16);
  ASSERT_EQ(millimetres.channels(), 1);
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x) {
      const double wanted =
          std::isfinite(metres.at(y, x)) ? std::clamp(1000.0 * metres.at(y, x), 1.0, 65535.0) : 0.0;
      ASSERT_NEAR(reinterpret_cast<const std::uint16_t*>(millimetres.row(y))[x], wanted, 0.51);
    }
  double near = 100, far = 0;
  for (float z : metres)
    if (z < 100) near = std::min<double>(near, z), far = std::max<double>(far, z);
  const double middle = (near + far) / 2;
  with({"--z-near", fmt::format("{}", middle), "--z-far", "100"});
  const std::size_t behind = read_cloud(path("d_cloud.ply")).size();
  for (const auto& v : read_cloud(path("d_cloud.ply"))) ASSERT_GE(v.z, middle * (1 - 1e-6));
  with({"--z-far", fmt::format("{}", middle)});
  const std::size_t before = read_cloud(path("d_cloud.ply")).size();
  EXPECT_GT(behind, 0u);
  EXPECT_GT(before, 0u);
  EXPECT_LE(behind + before, all);
  // Pixels of known depth on a grid, those in the mask left out.
  auto known = [&](int stride, const Image& mask) {
    std::size_t count = 0;
    for (int y = 0; y < kHeight; y += stride)
      for (int x = 0; x < kWidth; x += stride)
        count += std::isfinite(metres.at(y, x)) && (mask.empty() || !mask.row(y)[x]);
    return count;
  };
  EXPECT_EQ(all, known(1, {}));
  with({"--stride", "4"});
  EXPECT_EQ(read_cloud(path("d_cloud.ply")).size(), known(4, {}));
  with({"--edge", "0.5"});
  EXPECT_LT(read_cloud(path("d_cloud.ply")).size(), all);
  with({"--lr-check"});
  const Image mask = read_image(path("d_occluded.png"));
  EXPECT_EQ(read_cloud(path("d_cloud.ply")).size(), known(1, mask));
}

TEST_F(MatchDepth, ScalingKeepsMetres) {
  put_pair(folder_ / "l.png", folder_ / "r.png", 5, 192, 128);
  const std::vector<std::string> camera{
      "--focal", "160",         "--baseline",     "0.125", "--doffs", "6",
      "--scale", "0.5",         "--depth-format", "npy",   "--set",   "match.median=0",
      "--set",   "match.fill=0"};
  ASSERT_EQ(run(camera).code, 0);
  expect_good_map(read_disparity(path("d.pfm")), 96, 64);
  expect_depth("d", 80, 3);  // f and doffs of the halved images
  auto full = camera;
  full.insert(full.end(), {"--full-size", "--view", "both"});
  ASSERT_EQ(run(full, "f.pfm").code, 0);
  expect_good_map(read_disparity(path("f.pfm")), 192, 128);
  expect_depth("f", 160, 6);
  expect_depth("f_right", 160, 6);
  // Twice the disparity, the same metres.
  EXPECT_FLOAT_EQ(read_disparity(path("f.pfm")).at(40, 60),
                  2 * read_disparity(path("d.pfm")).at(20, 30));
  EXPECT_FLOAT_EQ(read_disparity(path("f_depth.npy")).at(40, 60),
                  read_disparity(path("d_depth.npy")).at(20, 30));
  // Points of both runs fill the same space.
  auto reach = [&](const std::string& name) {
    double most = 0;
    for (const auto& v : read_cloud(path(name))) most = std::max<double>(most, v.x / v.z);
    return most;
  };
  EXPECT_NEAR(reach("d_cloud.ply"), reach("f_cloud.ply"), 0.02);
}

TEST_F(MatchDepth, CalibrationOfAnotherSize) {
  auto calibration = [&](int width, int height) {
    write_file(path("calib.txt"),
               fmt::format("cam0=[160 0 94; 0 160 61; 0 0 1]\ncam1=[160 0 100; 0 160 61; 0 0 1]\n"
                           "doffs=6\nbaseline=125\nwidth={}\nheight={}\n",
                           width, height));
    return run({"--calib", path("calib.txt"), "--depth-format", "npy"});
  };
  // Twice the size: scaled, and said.
  Outcome result = calibration(2 * kWidth, 2 * kHeight);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(contains(result.err, "is for 192x128 images, these are 96x64")) << result.err;
  expect_depth("d", 80, 3);
  // The same width, but another height: cropped. Refused, whichever side differs.
  fs::remove(path("d_depth.npy"));
  for (const auto& [width, height] : {std::pair{kWidth, 2 * kHeight}, {2 * kWidth, kHeight}}) {
    result = calibration(width, height);
    EXPECT_EQ(result.code, 3);
    EXPECT_TRUE(contains(result.err, "a different aspect ratio")) << result.err;
    EXPECT_TRUE(contains(result.err, "calib.txt")) << result.err;
    EXPECT_FALSE(fs::exists(path("d_depth.npy")));
  }
  // A pixel of rounding is no crop.
  result = calibration(2 * kWidth + 1, 2 * kHeight + 1);
  EXPECT_EQ(result.code, 0) << result.err;
}

TEST_F(MatchDepth, BadCalibrations) {
  std::vector<std::vector<std::string>> lines;
  std::vector<std::pair<int, std::string>> expected;
  auto refused = [&](const std::vector<std::string>& more, int code, const std::string& part) {
    lines.push_back(line(more, "never.pfm"));
    expected.emplace_back(code, part);
  };
  write_file(path("bad.txt"), "hello\n");
  write_file(path("cut.json"), R"({"fx": 100, "cx0":)");
  write_file(path("nan.txt"), "nan 0 48 0 80 32 0 0 1\n0.1\n");
  refused({"--calib", path("missing.txt")}, 3, "missing.txt");
  refused({"--calib", path("bad.txt")}, 3, "bad.txt: is not a calibration of a known form");
  refused({"--calib", path("cut.json")}, 3, "cut.json");
  refused({"--calib", path("nan.txt")}, 3, "nan.txt");
  refused({"--calib", folder_.path()}, 3, "is a folder");
  refused({"--focal", "80"}, 2,
          "a positive --focal (pixels; or EXIF data) and a positive --baseline");
  refused({"--baseline", "0.1"}, 2, "its EXIF data hold no focal length");
  refused({"--doffs", "3"}, 2,
          "a positive --focal (pixels; or EXIF data) and a positive --baseline");
  refused({"--focal", "-80", "--baseline", "0.1"}, 2, "positive");
  refused({"--focal", "80", "--baseline", "0.1", "--calib", path("bad.txt")}, 2, "not both");
  refused({"--focal", "inf", "--baseline", "0.1"}, 3, "not a finite number");
  refused({"--focal", "80", "--baseline", "0.1", "--z-near", "5", "--z-far", "2"}, 2, "empty");
  refused({"--focal", "80", "--baseline", "0.1", "--stride", "0"}, 2, "stride");
  const auto results = nmrf_all(lines);
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].code, expected[i].first) << results[i].err;
    EXPECT_TRUE(contains(results[i].err, expected[i].second)) << results[i].err;
  }
  EXPECT_FALSE(fs::exists(path("never.pfm")));
}

}  // namespace
}  // namespace nmrf::test
