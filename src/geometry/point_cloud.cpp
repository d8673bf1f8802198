#include "viz/point_cloud.h"

#include <cmath>
#include <cstdint>

#include "core/check.h"

namespace nmrf {
namespace {

// True when a valid neighbour of the pixel lies more than `threshold` pixels of disparity away.
bool at_edge(const cv::Mat& disparity, int row, int col, double threshold) {
  constexpr int kSteps[4][2] = {{0, -1}, {0, 1}, {-1, 0}, {1, 0}};
  const double here = disparity.at<float>(row, col);
  for (const auto& step : kSteps) {
    const int y = row + step[0];
    const int x = col + step[1];
    if (y < 0 || y >= disparity.rows || x < 0 || x >= disparity.cols) continue;
    const double there = disparity.at<float>(y, x);
    if (std::isfinite(there) && std::abs(there - here) > threshold) return true;
  }
  return false;
}

}  // namespace

void PointCloudOptions::validate() const {
  check(
      z_near >= 0 && z_far > z_near && std::isfinite(z_near), ErrorKind::kUsage,
      "the depth range {} to {} m of the point cloud is empty; z-near must be at least 0 and below "
      "z-far.",
      z_near, z_far);
  check(edge_threshold >= 0, ErrorKind::kUsage,
        "the edge threshold is {} px; it must be positive, or 0 to keep all points.",
        edge_threshold);
  check(stride >= 1, ErrorKind::kUsage,
        "the stride of the point cloud is {}; it must be 1 or more.", stride);
}

std::vector<ColoredPoint> point_cloud(const cv::Mat& disparity, const cv::Mat& image,
                                      const Calibration& calibration, const cv::Mat& occluded,
                                      const PointCloudOptions& options) {
  options.validate();
  const cv::Mat depth = depth_from_disparity(disparity, calibration);
  check(
      image.type() == CV_8UC3 && image.size() == disparity.size(), ErrorKind::kUsage,
      "the image of a point cloud must be CV_8UC3 and of the size of the disparity map, {}x{}; it "
      "has {}x{} pixels.",
      disparity.cols, disparity.rows, image.cols, image.rows);
  check(occluded.empty() || (occluded.type() == CV_8UC1 && occluded.size() == disparity.size()),
        ErrorKind::kUsage,
        "the occlusion mask must be CV_8UC1 and of the size of the disparity map, {}x{}.",
        disparity.cols, disparity.rows);
  std::vector<ColoredPoint> points;
  for (int row = 0; row < disparity.rows; row += options.stride)
    for (int col = 0; col < disparity.cols; col += options.stride) {
      const double z = depth.at<float>(row, col);
      if (!std::isfinite(z) || z < options.z_near || z > options.z_far) continue;
      if (!occluded.empty() && occluded.at<std::uint8_t>(row, col) != 0) continue;
      if (options.edge_threshold > 0 && at_edge(disparity, row, col, options.edge_threshold))
        continue;
      const auto& bgr = image.at<cv::Vec3b>(row, col);
      points.push_back({static_cast<float>((col - calibration.cx) / calibration.fx * z),
                        static_cast<float>((row - calibration.cy) / calibration.fy * z),
                        static_cast<float>(z), bgr[2], bgr[1], bgr[0]});
    }
  return points;
}

}  // namespace nmrf
