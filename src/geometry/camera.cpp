// Lenses: from rays to pixels and back.
#include <cmath>

#include "core/check.h"
#include "geometry/matrix3.h"
#include "nmrf/rectify.h"

namespace nmrf {
namespace {

double coefficient(const Camera& camera, std::size_t i) {
  return i < camera.distortion.size() ? camera.distortion[i] : 0;
}

// Where an ideal camera of focal length 1 would see the ray, to where this lens sees it.
bool bend(const Camera& camera, double& x, double& y) {
  auto k = [&](std::size_t i) { return coefficient(camera, i); };
  const double r2 = x * x + y * y;
  if (camera.lens == Lens::kFisheye) {
    const double r = std::sqrt(r2);
    const double angle = std::atan(r), a2 = angle * angle;
    const double bent = angle * (1 + a2 * (k(0) + a2 * (k(1) + a2 * (k(2) + a2 * k(3)))));
    const double slope = 1 + a2 * (3 * k(0) + a2 * (5 * k(1) + a2 * (7 * k(2) + a2 * 9 * k(3))));
    const double factor = r > 1e-9 ? bent / r : 1;
    x *= factor;
    y *= factor;
    return slope > 0;
  }
  const double above = 1 + r2 * (k(0) + r2 * (k(1) + r2 * k(4)));
  const double below = 1 + r2 * (k(5) + r2 * (k(6) + r2 * k(7)));
  // Beyond the radius where the polynomial turns back, pixels would be seen twice.
  const double above_slope = 2 * (k(0) + r2 * (2 * k(1) + r2 * 3 * k(4)));
  const double below_slope = 2 * (k(5) + r2 * (2 * k(6) + r2 * 3 * k(7)));
  const double slope = above * below + r2 * (above_slope * below - above * below_slope);
  if (slope <= 0 || above <= 0 || below <= 0) return false;
  const double radial = above / below, xy = x * y;
  const double bent_x =
      x * radial + 2 * k(2) * xy + k(3) * (r2 + 2 * x * x) + r2 * (k(8) + r2 * k(9));
  y = y * radial + k(2) * (r2 + 2 * y * y) + 2 * k(3) * xy + r2 * (k(10) + r2 * k(11));
  x = bent_x;
  return true;
}

}  // namespace

bool Camera::project(const Vector3& ray, double& x, double& y) const {
  if (!(ray[2] > 1e-9)) return false;
  x = ray[0] / ray[2];
  y = ray[1] / ray[2];
  const bool seen = bend(*this, x, y);
  x = fx * x + cx;
  y = fy * y + cy;
  return seen;
}

bool Camera::ray(double px, double py, Vector3& result) const {
  const double wanted_x = (px - cx) / fx, wanted_y = (py - cy) / fy;
  double x = wanted_x, y = wanted_y;
  if (lens == Lens::kFisheye) {  // start at the ideal fisheye
    const double angle = std::min(std::hypot(x, y), 1.5);
    const double factor = angle > 1e-9 ? std::tan(angle) / angle : 1;
    x *= factor;
    y *= factor;
  }
  // Newton's method with differences; steps that lead astray are halved.
  auto miss = [&](double u, double v, double& dx, double& dy) {
    if (!bend(*this, u, v)) return false;
    dx = u - wanted_x;
    dy = v - wanted_y;
    return true;
  };
  double dx = 0, dy = 0;
  for (int i = 0; i < 20 && !miss(x, y, dx, dy); ++i) x *= 0.8, y *= 0.8;
  if (!miss(x, y, dx, dy)) return false;
  for (int round = 0; round < 50 && std::hypot(dx, dy) > 1e-12; ++round) {
    const double h = 1e-6 * std::max(1.0, std::hypot(x, y));
    double ax = 0, ay = 0, bx = 0, by = 0;
    if (!miss(x + h, y, ax, ay) || !miss(x, y + h, bx, by)) return false;
    const double xx = (ax - dx) / h, xy = (bx - dx) / h, yx = (ay - dy) / h, yy = (by - dy) / h;
    const double determinant = xx * yy - xy * yx;
    if (determinant == 0) return false;
    double step_x = (dx * yy - dy * xy) / determinant, step_y = (dy * xx - dx * yx) / determinant;
    const double before = std::hypot(dx, dy);
    bool better = false;
    for (int half = 0; half < 12 && !better; ++half, step_x /= 2, step_y /= 2) {
      double nx = 0, ny = 0;
      better = miss(x - step_x, y - step_y, nx, ny) && std::hypot(nx, ny) < before;
      if (!better) continue;
      x -= step_x;
      y -= step_y;
      dx = nx;
      dy = ny;
    }
    if (!better) break;
  }
  result = {x, y, 1};
  return std::hypot(dx, dy) < 1e-6;
}

void StereoRig::validate() const {
  const std::string name = source.empty() ? "the rig" : source;
  auto check_camera = [&](const Camera& camera, const char* side) {
    for (double value : {camera.fx, camera.fy, camera.cx, camera.cy})
      check(std::isfinite(value), ErrorKind::kInput, "{}: the {} camera matrix is not finite.",
            name, side);
    check(camera.fx > 0 && camera.fy > 0, ErrorKind::kInput,
          "{}: the {} camera has a focal length of {} x {} pixels; it must be positive.", name,
          side, camera.fx, camera.fy);
    const std::size_t count = camera.distortion.size();
    check(camera.lens == Lens::kFisheye ? count == 4 || count == 0
                                        : count <= 5 || count == 8 || count == 12,
          ErrorKind::kInput, "{}: {} distortion coefficients of the {} camera; expected {}.", name,
          count, side,
          camera.lens == Lens::kFisheye ? "4 of the equidistant model" : "4, 5, 8 or 12");
    for (double value : camera.distortion)
      check(std::isfinite(value), ErrorKind::kInput,
            "{}: the distortion of the {} camera is not finite.", name, side);
  };
  check_camera(left, "left");
  check_camera(right, "right");
  check(left.width == right.width && left.height == right.height, ErrorKind::kInput,
        "{}: the left camera's images are {}x{} and the right one's {}x{}; one size is expected.",
        name, left.width, left.height, right.width, right.height);
  const Matrix3 square = nmrf::product(rotation, transposed(rotation));
  double off = 0;
  for (std::size_t i = 0; i < 9; ++i) off = std::max(off, std::abs(square[i] - (i % 4 ? 0 : 1)));
  check(off < 1e-3, ErrorKind::kInput,
        "{}: the matrix between the cameras is not a rotation (its rows are not perpendicular "
        "and of length 1).",
        name);
  const double baseline = length(translation);
  check(std::isfinite(baseline) && baseline > 0, ErrorKind::kInput,
        "{}: the cameras lie at the same place, or the translation is not finite.", name);
  // The right camera's centre in the left camera's frame.
  const Vector3 centre = nmrf::product(transposed(rotation), translation);
  check(std::abs(centre[0]) > std::max(std::abs(centre[1]), std::abs(centre[2])), ErrorKind::kInput,
        "{}: the cameras are not side by side: the right one lies at ({:.3f}, {:.3f}, {:.3f}) of "
        "the left one's frame (x right, y down, z forward). Only pairs side by side are matched.",
        name, -centre[0], -centre[1], -centre[2]);
  check(
      centre[0] < 0, ErrorKind::kInput,
      "{}: the right camera lies {:.3f} to the left of the left one. Were left and right swapped?",
      name, centre[0]);
}

}  // namespace nmrf
