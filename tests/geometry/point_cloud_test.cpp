#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "nmrf/disparity.h"
#include "nmrf/files.h"
#include "nmrf/geometry.h"
#include "nmrf/image.h"
#include "nmrf/log.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::error_of;

const Calibration kCamera{.fx = 100,
                          .fy = 50,
                          .cx = 2,
                          .cy = 1,
                          .doffs = 5,
                          .baseline = 0.1,
                          .width = 6,
                          .height = 4,
                          .source = "test"};

Image coordinates_as_colors(int rows, int cols) {
  Image image(cols, rows);
  for (int y = 0; y < rows; ++y)
    for (int x = 0; x < cols; ++x) {
      std::uint8_t* rgb = image.row(y) + 3 * x;
      rgb[0] = static_cast<std::uint8_t>(x);
      rgb[1] = static_cast<std::uint8_t>(y);
      rgb[2] = 7;
    }
  return image;
}

Disparity flat(int rows, int cols, float value) {
  Disparity disparity;
  disparity.map = FloatMap(cols, rows, value);
  return disparity;
}

TEST(PointCloud, GeometryAndColours) {
  Disparity disparity = flat(4, 6, 5);
  disparity.map.at(3, 4) = 15;
  disparity.map.at(0, 0) = kInvalidDisparity;
  disparity.map.at(0, 1) = -5;  // d + doffs = 0: infinitely far
  const auto points = point_cloud(disparity, coordinates_as_colors(4, 6), kCamera);
  ASSERT_EQ(points.size(), 22u);
  std::size_t i = 0;
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 6; ++x) {
      if (y == 0 && x < 2) continue;
      const Point& p = points[i++];
      const double z = 0.1 * 100 / (disparity.map.at(y, x) + 5);
      EXPECT_FLOAT_EQ(p.z, static_cast<float>(z));
      // Project it back.
      EXPECT_NEAR(p.x / p.z * 100 + 2, x, 1e-4);
      EXPECT_NEAR(p.y / p.z * 50 + 1, y, 1e-4);
      EXPECT_EQ(p.rgb[0], x);
      EXPECT_EQ(p.rgb[1], y);
      EXPECT_EQ(p.rgb[2], 7);
    }
}

TEST(PointCloud, DepthLimits) {
  Disparity disparity = flat(1, 4, 0);
  for (int x = 0; x < 4; ++x)  // depths 1, 2, 4, 8 m
    disparity.map.at(0, x) = 10.0f / static_cast<float>(1 << x) - 5;
  const Image image = coordinates_as_colors(1, 4);
  auto count = [&](double z_near, double z_far) {
    return point_cloud(disparity, image, kCamera, {.z_near = z_near, .z_far = z_far}).size();
  };
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(count(0, inf), 4u);
  EXPECT_EQ(count(1.5, inf), 3u);
  EXPECT_EQ(count(0, 4.1), 3u);
  EXPECT_EQ(count(1.5, 4.1), 2u);
  EXPECT_EQ(count(20, 30), 0u);
}

TEST(PointCloud, EdgeFilterDropsBothSidesOfAStep) {
  Disparity disparity = flat(5, 9, 10);
  for (int y = 0; y < 5; ++y)
    for (int x = 5; x < 9; ++x) disparity.map.at(y, x) = 20;
  disparity.map.at(2, 1) = kInvalidDisparity;  // an invalid neighbour is no edge
  const Image image = coordinates_as_colors(5, 9);
  auto points = point_cloud(disparity, image, kCamera, {.edge = 1.0});
  EXPECT_EQ(points.size(), 5u * 7 - 1);
  for (const auto& p : points) EXPECT_TRUE(p.rgb[0] != 4 && p.rgb[0] != 5) << int(p.rgb[0]);
  points = point_cloud(disparity, image, kCamera, {.edge = 10.0});
  EXPECT_EQ(points.size(), 5u * 9 - 1);  // not more than the threshold
  // Vertical steps count as well.
  Disparity upright = flat(9, 5, 0);
  for (int y = 0; y < 9; ++y)
    for (int x = 0; x < 5; ++x) upright.map.at(y, x) = disparity.map.at(x, y);
  points = point_cloud(upright, coordinates_as_colors(9, 5), kCamera, {.edge = 1.0});
  EXPECT_EQ(points.size(), 5u * 7 - 1);
  for (const auto& p : points) EXPECT_TRUE(p.rgb[1] != 4 && p.rgb[1] != 5);
}

TEST(PointCloud, MaskConfidenceAndStride) {
  Disparity disparity = flat(5, 7, 10);
  const Image image = coordinates_as_colors(5, 7);
  disparity.mask = ByteMap(7, 5);
  disparity.mask.at(2, 4) = kOccluded;
  disparity.mask.at(1, 1) = kOutOfView;
  disparity.mask.at(0, 0) = kFilled;
  disparity.mask.at(3, 3) = kFilled | kOccluded;
  auto count = [&](const PointCloudOptions& options) {
    return point_cloud(disparity, image, kCamera, options).size();
  };
  EXPECT_EQ(count({}), 31u);
  EXPECT_EQ(count({.occluded = true}), 33u);
  EXPECT_EQ(count({.filled = true}), 32u);
  EXPECT_EQ(count({.occluded = true, .filled = true}), 35u);
  const auto sparse = point_cloud(disparity, image, kCamera, {.stride = 2});
  EXPECT_EQ(sparse.size(), 3u * 4 - 2);
  for (const auto& p : sparse) EXPECT_TRUE(p.rgb[0] % 2 == 0 && p.rgb[1] % 2 == 0);
  EXPECT_EQ(count({.stride = 100, .filled = true}), 1u);
  disparity.mask = {};
  disparity.confidence = FloatMap(7, 5, 0.5f);
  disparity.confidence.at(1, 1) = 0.75f;
  disparity.confidence.at(1, 2) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(count({}), 35u);
  EXPECT_EQ(count({.min_confidence = 0.5}), 34u);
  EXPECT_EQ(count({.min_confidence = 0.6}), 1u);
}

// Any image serves: grey, 16 bits, BGR.
TEST(PointCloud, ColoursOfOtherImages) {
  const Disparity disparity = flat(1, 1, 10);
  Image bgr(1, 1, 3, 8, ChannelOrder::kBgr);
  bgr.data()[0] = 1;
  bgr.data()[2] = 3;
  EXPECT_EQ(point_cloud(disparity, bgr, kCamera)[0].rgb, (std::array<std::uint8_t, 3>{3, 0, 1}));
  Image wide(1, 1, 1, 16);
  reinterpret_cast<std::uint16_t*>(wide.data())[0] = 257 * 9;
  EXPECT_EQ(point_cloud(disparity, wide, kCamera)[0].rgb, (std::array<std::uint8_t, 3>{9, 9, 9}));
}

// A calibration that puts everything behind the camera must not pass in silence.
TEST(PointCloud, WarnsWhenAllPointsLieBehindTheCamera) {
  std::string heard;
  set_log_sink([&](LogLevel level, const std::string& text) {
    if (level == LogLevel::kWarning) heard += text;
  });
  Calibration camera = kCamera;
  camera.width = 0;
  const Image image = coordinates_as_colors(4, 6);
  EXPECT_EQ(point_cloud(flat(4, 6, 20), image, camera).size(), 24u);
  EXPECT_EQ(heard, "");
  camera.doffs = -50;
  EXPECT_TRUE(point_cloud(flat(4, 6, 20), image, camera).empty());
  EXPECT_NE(heard.find("doffs is -50 px"), std::string::npos) << heard;
  EXPECT_NE(heard.find("24 of 24"), std::string::npos) << heard;
  heard.clear();
  Disparity mixed = flat(4, 6, 60);
  mixed.map.at(0, 0) = 10;  // a little beyond infinity is noise
  EXPECT_EQ(point_cloud(mixed, image, camera).size(), 23u);
  EXPECT_EQ(heard, "");
  camera.doffs = 0;
  EXPECT_TRUE(point_cloud(flat(4, 6, -3), image, camera).empty());
  EXPECT_NE(heard.find("swapped"), std::string::npos) << heard;
  set_log_sink({});
}

TEST(PointCloud, Refuses) {
  Disparity disparity = flat(4, 6, 5);
  const Image image = coordinates_as_colors(4, 6);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const PointCloudOptions& options :
       {PointCloudOptions{.z_near = -1}, PointCloudOptions{.z_near = 2, .z_far = 1},
        PointCloudOptions{.z_near = nan}, PointCloudOptions{.z_far = nan},
        PointCloudOptions{.edge = -1}, PointCloudOptions{.edge = nan},
        PointCloudOptions{.stride = 0}, PointCloudOptions{.stride = -3},
        PointCloudOptions{.min_confidence = -1}, PointCloudOptions{.min_confidence = nan},
        PointCloudOptions{.min_confidence = 0.5}})  // there is no confidence map
    error_of(ErrorKind::kUsage, [&] { point_cloud(disparity, image, kCamera, options); });
  error_of(ErrorKind::kUsage,
           [&] { point_cloud(disparity, coordinates_as_colors(6, 4), kCamera); });
  error_of(ErrorKind::kUsage, [&] { point_cloud(disparity, Image(), kCamera); });
  error_of(ErrorKind::kUsage, [&] { point_cloud(Disparity(), image, kCamera); });
  disparity.mask = ByteMap(5, 4);
  error_of(ErrorKind::kUsage, [&] { point_cloud(disparity, image, kCamera); });
  disparity.mask = {};
  Calibration broken = kCamera;
  broken.fx = 0;
  error_of(ErrorKind::kInput, [&] { point_cloud(disparity, image, broken); });
}

// The whole way on a real scene: truth, image and calibration of Middlebury's Motorcycle.
TEST(PointCloud, RealScene) {
  NMRF_NEED_SHARED("data/Middlebury/MiddEval3/trainingQ/Motorcycle/calib.txt");
  const auto scene = test::shared_folder() / "data/Middlebury/MiddEval3/trainingQ/Motorcycle";
  Disparity disparity;
  disparity.map = read_disparity(scene / "disp0GT.pfm");
  const Image image = read_image(scene / "im0.png");
  const Calibration calibration = read_calibration(scene / "calib.txt");
  ASSERT_EQ(calibration.width, disparity.map.width());
  ASSERT_EQ(calibration.height, disparity.map.height());
  const auto all = point_cloud(disparity, image, calibration);
  const auto clean = point_cloud(disparity, image, calibration, {.edge = 1.0});
  EXPECT_GT(all.size(), 300000u);
  EXPECT_LT(clean.size(), all.size());
  EXPECT_GT(clean.size(), all.size() * 3 / 4);
  for (const auto& p : all) {  // vmin 7 and vmax 65 of calib.txt: 4.85 m and 1.97 m
    ASSERT_GT(p.z, 1.9f);
    ASSERT_LT(p.z, 5.1f);
  }
  test::TempFolder folder;
  write_ply(folder / "motorcycle.ply", clean);
  EXPECT_GT(std::filesystem::file_size(folder / "motorcycle.ply"), clean.size() * 15);
}

}  // namespace
}  // namespace nmrf
