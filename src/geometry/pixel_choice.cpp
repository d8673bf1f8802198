#include "geometry/pixel_choice.h"

#include <cmath>
#include <limits>

#include "core/check.h"

namespace nmrf {
namespace {

using Vector = std::array<float, 3>;

Vector difference(const Vector& a, const Vector& b) {
  return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
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

PixelChoice::PixelChoice(const Disparity& disparity, const Calibration& calibration,
                         const PointCloudOptions& options)
    : disparity_(disparity),
      calibration_(calibration),
      options_(options),
      depth_((options.validate(), depth_from_disparity(disparity.map, calibration))),
      unwanted_((options.occluded ? 0 : kOccluded | kOutOfView) | (options.filled ? 0 : kFilled)) {
  const FloatMap& map = disparity.map;
  check(disparity.mask.empty() || disparity.mask.same_size(map), ErrorKind::kUsage,
        "the mask of a disparity map has its size, {}x{}; this one has {}x{} pixels.", map.width(),
        map.height(), disparity.mask.width(), disparity.mask.height());
  const FloatMap& confidence = disparity.confidence;
  check(options.min_confidence <= 0 || confidence.same_size(map), ErrorKind::kUsage,
        "a least confidence of {} needs a confidence map of the size of the disparity map, {}x{}; "
        "this one has {}x{} pixels.",
        options.min_confidence, map.width(), map.height(), confidence.width(), confidence.height());
}

// A valid neighbour lies more than `edge` pixels of disparity away.
bool PixelChoice::at_edge(int row, int col) const {
  constexpr int kSteps[4][2] = {{0, -1}, {0, 1}, {-1, 0}, {1, 0}};
  const FloatMap& map = disparity_.map;
  const double here = map.at(row, col);
  for (const auto& step : kSteps) {
    const int y = row + step[0], x = col + step[1];
    if (y < 0 || y >= map.height() || x < 0 || x >= map.width()) continue;
    const double there = map.at(y, x);
    if (std::isfinite(there) && std::abs(there - here) > options_.edge) return true;
  }
  return false;
}

bool PixelChoice::wanted(int y, int x) const {
  const double z = depth_.at(y, x);
  if (!std::isfinite(z) || z < options_.z_near || z > options_.z_far) return false;
  if (!disparity_.mask.empty() && (disparity_.mask.at(y, x) & unwanted_) != 0) return false;
  if (options_.min_confidence > 0 && !(disparity_.confidence.at(y, x) >= options_.min_confidence))
    return false;
  return options_.edge <= 0 || !at_edge(y, x);
}

Vector PixelChoice::position(int y, int x) const {
  const double z = depth_.at(y, x);
  return {static_cast<float>((x - calibration_.cx) / calibration_.fx * z),
          static_cast<float>((y - calibration_.cy) / calibration_.fy * z), static_cast<float>(z)};
}

Vector PixelChoice::normal(int y, int x) const {
  // Towards growing x or y, along the side whose depth differs less: not across an edge.
  auto along = [&](int dy, int dx, Vector& step) {
    const float here = depth_.at(y, x);
    float least = std::numeric_limits<float>::infinity();
    for (int sign : {1, -1}) {
      const int v = y + sign * dy, u = x + sign * dx;
      if (v < 0 || v >= depth_.height() || u < 0 || u >= depth_.width()) continue;
      const float apart = std::abs(depth_.at(v, u) - here);
      if (!(apart < least)) continue;
      least = apart;
      step = sign > 0 ? difference(position(v, u), position(y, x))
                      : difference(position(y, x), position(v, u));
    }
    return std::isfinite(least);
  };
  Vector a{}, b{};
  if (!along(0, 1, a) || !along(1, 0, b)) return {};
  // x right, y down, z forward: this order points to the camera.
  const double n[3] = {static_cast<double>(b[1]) * a[2] - static_cast<double>(b[2]) * a[1],
                       static_cast<double>(b[2]) * a[0] - static_cast<double>(b[0]) * a[2],
                       static_cast<double>(b[0]) * a[1] - static_cast<double>(b[1]) * a[0]};
  const double length = std::sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
  if (!(length > 0)) return {};
  return {static_cast<float>(n[0] / length), static_cast<float>(n[1] / length),
          static_cast<float>(n[2] / length)};
}

}  // namespace nmrf
