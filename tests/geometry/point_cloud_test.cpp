#include "viz/point_cloud.h"

#include <cmath>
#include <limits>

#include "nmrf/disparity.h"
#include "nmrf/image.h"
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

cv::Mat coordinates_as_colors(int rows, int cols) {
  cv::Mat image(rows, cols, CV_8UC3);
  for (int y = 0; y < rows; ++y)
    for (int x = 0; x < cols; ++x)
      image.at<cv::Vec3b>(y, x) =
          cv::Vec3b(7, static_cast<std::uint8_t>(y), static_cast<std::uint8_t>(x));
  return image;
}

TEST(PointCloud, GeometryAndColours) {
  cv::Mat disparity(4, 6, CV_32FC1, cv::Scalar(5));
  disparity.at<float>(3, 4) = 15;
  disparity.at<float>(0, 0) = kInvalidDisparity;
  disparity.at<float>(0, 1) = -5;  // d + doffs = 0: infinitely far
  const auto points = point_cloud(disparity, coordinates_as_colors(4, 6), kCamera);
  ASSERT_EQ(points.size(), 22u);
  std::size_t i = 0;
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 6; ++x) {
      if (y == 0 && x < 2) continue;
      const ColoredPoint& p = points[i++];
      const double z = 0.1 * 100 / (disparity.at<float>(y, x) + 5);
      EXPECT_FLOAT_EQ(p.z, static_cast<float>(z));
      // Project it back.
      EXPECT_NEAR(p.x / p.z * 100 + 2, x, 1e-4);
      EXPECT_NEAR(p.y / p.z * 50 + 1, y, 1e-4);
      EXPECT_EQ(p.red, x);
      EXPECT_EQ(p.green, y);
      EXPECT_EQ(p.blue, 7);
    }
}

TEST(PointCloud, DepthLimits) {
  cv::Mat disparity(1, 4, CV_32FC1);
  for (int x = 0; x < 4; ++x)  // depths 1, 2, 4, 8 m
    disparity.at<float>(0, x) = 10.0f / static_cast<float>(1 << x) - 5;
  const cv::Mat image = coordinates_as_colors(1, 4);
  auto count = [&](double z_near, double z_far) {
    return point_cloud(disparity, image, kCamera, {}, {.z_near = z_near, .z_far = z_far}).size();
  };
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(count(0, inf), 4u);
  EXPECT_EQ(count(1.5, inf), 3u);
  EXPECT_EQ(count(0, 4.1), 3u);
  EXPECT_EQ(count(1.5, 4.1), 2u);
  EXPECT_EQ(count(20, 30), 0u);
}

TEST(PointCloud, EdgeFilterDropsBothSidesOfAStep) {
  cv::Mat disparity(5, 9, CV_32FC1, cv::Scalar(10));
  disparity(cv::Rect(5, 0, 4, 5)).setTo(20);
  disparity.at<float>(2, 1) = kInvalidDisparity;  // an invalid neighbour is no edge
  const cv::Mat image = coordinates_as_colors(5, 9);
  auto points = point_cloud(disparity, image, kCamera, {}, {.edge_threshold = 1.0});
  EXPECT_EQ(points.size(), 5u * 7 - 1);
  for (const auto& p : points) EXPECT_TRUE(p.red != 4 && p.red != 5) << int(p.red);
  points = point_cloud(disparity, image, kCamera, {}, {.edge_threshold = 10.0});
  EXPECT_EQ(points.size(), 5u * 9 - 1);  // not more than the threshold
  // Vertical steps count as well.
  const cv::Mat upright = disparity.t();
  points = point_cloud(upright, coordinates_as_colors(9, 5), kCamera, {}, {.edge_threshold = 1.0});
  EXPECT_EQ(points.size(), 5u * 7 - 1);
  for (const auto& p : points) EXPECT_TRUE(p.green != 4 && p.green != 5);
}

TEST(PointCloud, OccludedPixelsAndStride) {
  const cv::Mat disparity(5, 7, CV_32FC1, cv::Scalar(10)), image = coordinates_as_colors(5, 7);
  cv::Mat occluded = cv::Mat::zeros(5, 7, CV_8UC1);
  occluded.at<std::uint8_t>(2, 4) = 255;
  occluded.at<std::uint8_t>(1, 1) = 1;
  EXPECT_EQ(point_cloud(disparity, image, kCamera, occluded).size(), 33u);
  const auto sparse = point_cloud(disparity, image, kCamera, occluded, {.stride = 2});
  EXPECT_EQ(sparse.size(), 3u * 4 - 1);
  for (const auto& p : sparse) EXPECT_TRUE(p.red % 2 == 0 && p.green % 2 == 0);
  EXPECT_EQ(point_cloud(disparity, image, kCamera, {}, {.stride = 100}).size(), 1u);
}

TEST(PointCloud, Refuses) {
  const cv::Mat disparity(4, 6, CV_32FC1, cv::Scalar(5)), image = coordinates_as_colors(4, 6);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const PointCloudOptions& options :
       {PointCloudOptions{.z_near = -1}, PointCloudOptions{.z_near = 2, .z_far = 1},
        PointCloudOptions{.z_near = nan}, PointCloudOptions{.z_far = nan},
        PointCloudOptions{.edge_threshold = -1}, PointCloudOptions{.edge_threshold = nan},
        PointCloudOptions{.stride = 0}, PointCloudOptions{.stride = -3}})
    error_of(ErrorKind::kUsage, [&] { point_cloud(disparity, image, kCamera, {}, options); });
  error_of(ErrorKind::kUsage,
           [&] { point_cloud(disparity, coordinates_as_colors(6, 4), kCamera); });
  error_of(ErrorKind::kUsage, [&] { point_cloud(disparity, cv::Mat(4, 6, CV_8UC1), kCamera); });
  error_of(ErrorKind::kUsage,
           [&] { point_cloud(disparity, image, kCamera, cv::Mat(4, 5, CV_8UC1)); });
  error_of(ErrorKind::kUsage, [&] { point_cloud(cv::Mat(), image, kCamera); });
  Calibration broken = kCamera;
  broken.fx = 0;
  error_of(ErrorKind::kInput, [&] { point_cloud(disparity, image, broken); });
}

// The whole way on a real scene: truth, image and calibration of Middlebury's Motorcycle.
TEST(PointCloud, RealScene) {
  NMRF_NEED_SHARED("data/Middlebury/MiddEval3/trainingQ/Motorcycle/calib.txt");
  const auto scene = test::shared_folder() / "data/Middlebury/MiddEval3/trainingQ/Motorcycle";
  const cv::Mat disparity = read_disparity(scene / "disp0GT.pfm");
  const cv::Mat image = read_image(scene / "im0.png");
  const Calibration calibration = read_calibration(scene / "calib.txt");
  ASSERT_EQ(cv::Size(calibration.width, calibration.height), disparity.size());
  const auto all = point_cloud(disparity, image, calibration);
  const auto clean = point_cloud(disparity, image, calibration, {}, {.edge_threshold = 1.0});
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
