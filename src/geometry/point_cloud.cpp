#include <cmath>
#include <cstdint>

#include "core/check.h"
#include "nmrf/geometry.h"

namespace nmrf {
namespace {

// True when a valid neighbour of the pixel lies more than `threshold` pixels of disparity away.
bool at_edge(const FloatMap& disparity, int row, int col, double threshold) {
  constexpr int kSteps[4][2] = {{0, -1}, {0, 1}, {-1, 0}, {1, 0}};
  const double here = disparity.at(row, col);
  for (const auto& step : kSteps) {
    const int y = row + step[0];
    const int x = col + step[1];
    if (y < 0 || y >= disparity.height() || x < 0 || x >= disparity.width()) continue;
    const double there = disparity.at(y, x);
    if (std::isfinite(there) && std::abs(there - here) > threshold) return true;
  }
  return false;
}

void check_sizes(const Disparity& disparity, const ImageView& image,
                 const PointCloudOptions& options) {
  const FloatMap& map = disparity.map;
  check(image.width == map.width() && image.height == map.height(), ErrorKind::kUsage,
        "the image of a point cloud must be of the size of the disparity map, {}x{}; it has {}x{} "
        "pixels.",
        map.width(), map.height(), image.width, image.height);
  check(disparity.mask.empty() || disparity.mask.same_size(map), ErrorKind::kUsage,
        "the mask of a disparity map has its size, {}x{}; this one has {}x{} pixels.", map.width(),
        map.height(), disparity.mask.width(), disparity.mask.height());
  const FloatMap& confidence = disparity.confidence;
  check(options.min_confidence <= 0 || confidence.same_size(map), ErrorKind::kUsage,
        "a least confidence of {} needs a confidence map of the size of the disparity map, {}x{}; "
        "this one has {}x{} pixels.",
        options.min_confidence, map.width(), map.height(), confidence.width(), confidence.height());
}

}  // namespace

void PointCloudOptions::validate() const {
  check(
      z_near >= 0 && z_far > z_near && std::isfinite(z_near), ErrorKind::kUsage,
      "the depth range {} to {} m of the point cloud is empty; z_near must be at least 0 and below "
      "z_far.",
      z_near, z_far);
  check(edge >= 0, ErrorKind::kUsage,
        "the edge threshold is {} px; it must be positive, or 0 to keep all points.", edge);
  check(stride >= 1, ErrorKind::kUsage,
        "the stride of the point cloud is {}; it must be 1 or more.", stride);
  check(min_confidence >= 0 && min_confidence <= 1, ErrorKind::kUsage,
        "the least confidence of the point cloud is {}; it must be between 0 and 1.",
        min_confidence);
}

std::vector<Point> point_cloud(const Disparity& disparity, const ImageView& image,
                               const Calibration& calibration, const PointCloudOptions& options) {
  options.validate();
  const FloatMap& map = disparity.map;
  const FloatMap depth = depth_from_disparity(map, calibration);
  check_sizes(disparity, image, options);
  const Image colors = to_rgb8(image, "the image of the point cloud");
  const int unwanted =
      (options.occluded ? 0 : kOccluded | kOutOfView) | (options.filled ? 0 : kFilled);
  std::vector<Point> points;
  for (int y = 0; y < map.height(); y += options.stride)
    for (int x = 0; x < map.width(); x += options.stride) {
      const double z = depth.at(y, x);
      if (!std::isfinite(z) || z < options.z_near || z > options.z_far) continue;
      if (!disparity.mask.empty() && (disparity.mask.at(y, x) & unwanted) != 0) continue;
      if (options.min_confidence > 0 && !(disparity.confidence.at(y, x) >= options.min_confidence))
        continue;
      if (options.edge > 0 && at_edge(map, y, x, options.edge)) continue;
      const std::uint8_t* rgb = colors.row(y) + 3 * x;
      points.push_back({static_cast<float>((x - calibration.cx) / calibration.fx * z),
                        static_cast<float>((y - calibration.cy) / calibration.fy * z),
                        static_cast<float>(z),
                        {rgb[0], rgb[1], rgb[2]}});
    }
  return points;
}

}  // namespace nmrf
