// Normals, thinning, outliers, meshes and their files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/file.h"
#include "core/rng.h"
#include "nmrf/files.h"
#include "nmrf/geometry.h"
#include "support/support.h"

namespace nmrf {
namespace {

const Calibration kCamera{.fx = 80, .fy = 80, .cx = 20, .cy = 15, .doffs = 0, .baseline = 0.1};

// d = fx B / Z with Z = z + slope x: a plane, as 1 / Z is linear over the image.
Disparity slanted(int width, int height, double at_centre, double per_pixel) {
  Disparity d;
  d.map = FloatMap(width, height);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      d.map.at(y, x) = static_cast<float>(at_centre + per_pixel * (x - kCamera.cx));
  return d;
}

TEST(Normals, OfAPlanePointToTheCamera) {
  const Image image(41, 31);
  const Disparity d = slanted(41, 31, 8, 0.1);
  const auto points = point_cloud(d, image, kCamera, {.normals = true});
  ASSERT_EQ(points.size(), 41u * 31u);
  // The plane n p = c with d = fx B / Z: per_pixel / B x + d0 / (fx B) ... z = 1.
  double n[3] = {-0.1 * 80 / (80 * 0.1), 0, -8 / (80 * 0.1)};
  const double length = std::hypot(n[0], n[1], n[2]);
  for (const Point& point : points) {
    EXPECT_NEAR(point.normal[0], n[0] / length, 2e-3);
    EXPECT_NEAR(point.normal[1], 0, 2e-3);
    EXPECT_NEAR(point.normal[2], n[2] / length, 2e-3);
  }
  for (const Point& point : point_cloud(d, image, kCamera))
    EXPECT_EQ(point.normal, (std::array<float, 3>{}));
}

// At a step the normal is that of the own side.
TEST(Normals, DoNotCrossEdges) {
  Disparity d = slanted(40, 8, 4, 0);
  for (int y = 0; y < 8; ++y)
    for (int x = 20; x < 40; ++x) d.map.at(y, x) = 12;
  for (const Point& point : point_cloud(d, Image(40, 8), kCamera, {.normals = true}))
    EXPECT_NEAR(point.normal[2], -1, 1e-4);
}

TEST(Clouds, ThinnedByCubes) {
  const std::vector<Point> points{{0.01f, 0.02f, 1.01f, {10, 20, 30}, {0, 0, -1}},
                                  {0.03f, 0.04f, 1.03f, {20, 20, 40}, {0, 0, -1}},
                                  {-0.01f, 0.02f, 1.01f, {1, 2, 3}, {0, 1, 0}}};
  const auto thin = thin_out(points, 0.1);
  ASSERT_EQ(thin.size(), 2u);
  EXPECT_NEAR(thin[0].x, 0.02, 1e-6);
  EXPECT_NEAR(thin[0].y, 0.03, 1e-6);
  EXPECT_NEAR(thin[0].z, 1.02, 1e-6);
  EXPECT_EQ(thin[0].rgb, (std::array<std::uint8_t, 3>{15, 20, 35}));
  EXPECT_EQ(thin[0].normal, (std::array<float, 3>{0, 0, -1}));
  EXPECT_EQ(thin[1].rgb, (std::array<std::uint8_t, 3>{1, 2, 3}));
  EXPECT_EQ(thin_out(points, 1e-4).size(), 3u);
  test::error_of(ErrorKind::kUsage, [&] { thin_out(points, 0); });
}

// Against distances to all others.
TEST(Clouds, OutliersLeave) {
  Rng rng(1);
  std::vector<Point> points;
  auto at = [&] { return static_cast<float>(rng.uniform(0, 1)); };
  for (int i = 0; i < 500; ++i) points.push_back({at(), at(), at(), {}});
  points.push_back({5, 5, 5, {255, 0, 0}});
  std::vector<double> means;
  constexpr std::size_t kNeighbours = 7;
  for (const Point& a : points) {
    std::vector<double> all;
    for (const Point& b : points)
      if (&a != &b) all.push_back(std::hypot(a.x - b.x, a.y - b.y, a.z - b.z));
    std::sort(all.begin(), all.end());
    double sum = 0;
    for (std::size_t i = 0; i < kNeighbours; ++i) sum += all[i];
    means.push_back(sum / kNeighbours);
  }
  double mean = 0, variance = 0;
  for (double m : means) mean += m / static_cast<double>(means.size());
  for (double m : means) variance += (m - mean) * (m - mean) / static_cast<double>(means.size());
  for (double deviations : {0.0, 0.05, 2.0}) {
    std::vector<Point> expected;
    for (std::size_t i = 0; i < points.size(); ++i)
      if (means[i] <= mean + deviations * std::sqrt(variance)) expected.push_back(points[i]);
    const auto kept = without_outliers(points, kNeighbours, deviations);
    ASSERT_EQ(kept.size(), expected.size()) << deviations;
    for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_EQ(kept[i].x, expected[i].x);
    EXPECT_LT(kept.size(), points.size());
  }
  const std::vector<Point> few(points.begin(), points.begin() + 5);
  EXPECT_EQ(without_outliers(few, 7, 1).size(), 5u);
  test::error_of(ErrorKind::kUsage, [&] { without_outliers(points, 0, 1); });
}

TEST(Clouds, PcdFile) {
  test::TempFolder folder;
  const std::vector<Point> points{{1, 2, 3, {10, 20, 30}, {0, 0, -1}}};
  write_pcd(folder / "a.pcd", points, true);
  const std::string content = read_file(folder / "a.pcd");
  EXPECT_NE(content.find("\nFIELDS x y z rgb normal_x normal_y normal_z\nSIZE 4 4 4 4 4 4 4\n"
                         "TYPE F F F U F F F\nCOUNT 1 1 1 1 1 1 1\nWIDTH 1\nHEIGHT 1\n"),
            std::string::npos);
  const std::size_t body = content.find("DATA binary\n") + 12;
  ASSERT_EQ(content.size() - body, 28u);
  float xyz[3], normal[3];
  std::uint32_t rgb;
  std::memcpy(xyz, content.data() + body, 12);
  std::memcpy(&rgb, content.data() + body + 12, 4);
  std::memcpy(normal, content.data() + body + 16, 12);
  EXPECT_EQ(xyz[2], 3);
  EXPECT_EQ(rgb, 0x0a141eu);
  EXPECT_EQ(normal[2], -1);
  write_pcd(folder / "b.pcd", points);
  const std::string plain = read_file(folder / "b.pcd");
  EXPECT_EQ(plain.size() - plain.find("DATA binary\n") - 12, 16u);
  write_ply(folder / "a.ply", points, true);
  const std::string ply = read_file(folder / "a.ply");
  EXPECT_NE(ply.find("property float nz\nproperty uchar red\n"), std::string::npos);
  EXPECT_EQ(ply.size() - ply.find("end_header\n") - 11, 27u);
}

// Triangles and the step that cuts them.
TEST(Mesh, IsCutAtDepthEdges) {
  Disparity d = slanted(10, 6, 4, 0);
  EXPECT_EQ(depth_mesh(d, kCamera).triangles.size(), 2u * 9 * 5);
  for (int y = 0; y < 6; ++y)
    for (int x = 5; x < 10; ++x) d.map.at(y, x) = 8;
  const Mesh mesh = depth_mesh(d, kCamera);
  EXPECT_EQ(mesh.triangles.size(), 2u * 8 * 5);  // the column of cells at the step is left out
  EXPECT_EQ(mesh.vertices.size(), 60u);
  EXPECT_EQ(depth_mesh(d, kCamera, {}, 5).triangles.size(), 2u * 9 * 5);
  // Every second pixel: 5 x 3 of them; the step may be twice as high.
  EXPECT_EQ(depth_mesh(d, kCamera, {.stride = 2}).triangles.size(), 2u * 3 * 2);
  d.map.at(0, 0) = kInvalidDisparity;
  const Mesh holed = depth_mesh(d, kCamera);
  EXPECT_EQ(holed.triangles.size(), mesh.triangles.size() - 1);
  EXPECT_EQ(holed.vertices.size(), 59u);
  // Towards the camera, that is with a normal along -z.
  const auto& t = mesh.triangles[0];
  const auto &a = mesh.vertices[t[0]], &b = mesh.vertices[t[1]], &c = mesh.vertices[t[2]];
  EXPECT_LT((b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x), 0);
  EXPECT_FLOAT_EQ(a.u, 0.5f / 10);
  EXPECT_FLOAT_EQ(a.v, 0.5f / 6);
  test::error_of(ErrorKind::kUsage, [&] { depth_mesh(d, kCamera, {}, 0); });
}

TEST(Mesh, ObjFile) {
  test::TempFolder folder;
  const Mesh mesh = depth_mesh(slanted(4, 3, 4, 0), kCamera);
  const auto files = write_obj(folder / "m.obj", mesh, Image(4, 3));
  ASSERT_EQ(files.size(), 3u);
  for (const auto& file : files) EXPECT_TRUE(std::filesystem::exists(file));
  EXPECT_EQ(read_image(folder / "m_texture.png").width(), 4);
  EXPECT_NE(read_file(folder / "m.mtl").find("map_Kd m_texture.png"), std::string::npos);
  std::istringstream lines(read_file(folder / "m.obj"));
  int v = 0, vt = 0, f = 0;
  for (std::string line; std::getline(lines, line);) {
    v += line.starts_with("v ");
    vt += line.starts_with("vt ");
    f += line.starts_with("f ");
  }
  EXPECT_EQ(v, 12);
  EXPECT_EQ(vt, 12);
  EXPECT_EQ(f, 12);
}

TEST(Mesh, GlbFile) {
  test::TempFolder folder;
  const Mesh mesh = depth_mesh(slanted(5, 3, 4, 0.1), kCamera);
  write_glb(folder / "m.glb", mesh, Image(5, 3));
  const std::string bytes = read_file(folder / "m.glb");
  std::uint32_t header[5];
  ASSERT_GT(bytes.size(), sizeof header);
  std::memcpy(header, bytes.data(), sizeof header);
  EXPECT_EQ(bytes.substr(0, 4), "glTF");
  EXPECT_EQ(header[1], 2u);
  EXPECT_EQ(header[2], bytes.size());
  const auto json = nlohmann::json::parse(bytes.substr(20, header[3]));
  std::uint32_t chunk[2];
  std::memcpy(chunk, bytes.data() + 20 + header[3], sizeof chunk);
  EXPECT_EQ(json["buffers"][0]["byteLength"], chunk[0]);
  EXPECT_EQ(28 + header[3] + chunk[0], bytes.size());
  ASSERT_TRUE(json["scenes"].is_array() && json["meshes"].is_array() && json["nodes"].is_array());
  EXPECT_EQ(json["scenes"][0]["nodes"], nlohmann::json::array({0}));
  const auto& primitive = json["meshes"][0]["primitives"][0];
  EXPECT_EQ(primitive["attributes"]["POSITION"], 0);
  EXPECT_EQ(json["accessors"][0]["count"], 15);
  EXPECT_EQ(json["accessors"][2]["count"], 3 * 16);
  const auto& view = json["bufferViews"][3];
  const std::size_t picture = 28 + header[3] + view["byteOffset"].get<std::size_t>();
  EXPECT_EQ(bytes.substr(picture, 2), "\xff\xd8");  // a JPEG
  float first[3];
  std::memcpy(first, bytes.data() + 28 + header[3], sizeof first);
  EXPECT_FLOAT_EQ(first[0], mesh.vertices[0].x);
  EXPECT_FLOAT_EQ(first[1], -mesh.vertices[0].y);
  EXPECT_FLOAT_EQ(first[2], -mesh.vertices[0].z);
  test::error_of(ErrorKind::kInput, [&] { write_glb(folder / "n.glb", {}, Image(5, 3)); });
}

TEST(Depth, SigmaFollowsTheExpectedError) {
  Disparity d = slanted(5, 3, 4, 0);
  test::error_of(ErrorKind::kUsage, [&] { depth_sigma(d, kCamera); });
  d.expected_error = FloatMap(5, 3, 0.5f);
  d.mask = ByteMap(5, 3);
  d.mask.at(1, 1) = kFilled;
  const FloatMap sigma = depth_sigma(d, kCamera);
  EXPECT_FLOAT_EQ(sigma.at(0, 0), 2 * 0.5f / 4);  // Z = 80 * 0.1 / 4 = 2 m
  EXPECT_TRUE(std::isinf(sigma.at(1, 1)));
  EXPECT_FLOAT_EQ(depth_sigma(d, kCamera, true).at(1, 1), 0.25f);
}

}  // namespace
}  // namespace nmrf
