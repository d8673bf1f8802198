#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check.h"
#include "geometry/matrix3.h"
#include "kernels/remap.h"
#include "nmrf/rectify.h"

namespace nmrf {
namespace {

// A part of the plane z = 1 of the rectified frame.
struct Window {
  double left, right, top, bottom;
};

// What a camera sees there: `inner` lies wholly inside its image, `outer` holds all of it. Rays of
// more than 80 degrees from the axis count as 80.
void see(const Camera& camera, const Matrix3& rotation, Window& inner, Window& outer) {
  constexpr int kSteps = 32;
  const double most = std::tan(80 * 3.14159265358979323846 / 180);
  const double far = std::numeric_limits<double>::infinity();
  inner = {-far, far, -far, far};
  outer = {far, -far, far, -far};
  for (int side = 0; side < 4; ++side)
    for (int i = 0; i <= kSteps; ++i) {
      const double along = static_cast<double>(i) / kSteps;
      const double right = camera.width - 1.0, bottom = camera.height - 1.0;
      Vector3 ray{};
      const double px = side == 0 ? 0 : side == 1 ? right : along * right;
      const double py = side == 2 ? 0 : side == 3 ? bottom : along * bottom;
      double x = (px - camera.cx) / camera.fx * most, y = (py - camera.cy) / camera.fy * most;
      if (camera.ray(px, py, ray)) {
        ray = product(rotation, ray);
        if (ray[2] > 0.05) {
          x = ray[0] / ray[2];
          y = ray[1] / ray[2];
        }
      }
      x = std::clamp(x, -most, most);
      y = std::clamp(y, -most, most);
      if (side == 0) inner.left = std::max(inner.left, x);
      if (side == 1) inner.right = std::min(inner.right, x);
      if (side == 2) inner.top = std::max(inner.top, y);
      if (side == 3) inner.bottom = std::min(inner.bottom, y);
      outer = {std::min(outer.left, x), std::max(outer.right, x), std::min(outer.top, y),
               std::max(outer.bottom, y)};
    }
}

Window common(const Window& a, const Window& b) {
  return {std::max(a.left, b.left), std::min(a.right, b.right), std::max(a.top, b.top),
          std::min(a.bottom, b.bottom)};
}

Window around(const Window& a, const Window& b) {
  return {std::min(a.left, b.left), std::max(a.right, b.right), std::min(a.top, b.top),
          std::max(a.bottom, b.bottom)};
}

Window between(const Window& a, const Window& b, double share) {
  auto mix = [&](double u, double v) { return u + share * (v - u); };
  return {mix(a.left, b.left), mix(a.right, b.right), mix(a.top, b.top), mix(a.bottom, b.bottom)};
}

}  // namespace

void RectifyOptions::validate() const {
  check(alpha >= 0 && alpha <= 1, ErrorKind::kUsage, "alpha is {}; expected 0 to 1", alpha);
  const bool none = width == 0 && height == 0;
  check(none || (width >= 32 && height >= 32 && width <= 32768 && height <= 32768),
        ErrorKind::kUsage, "rectified images of {}x{}; expected at least 32x32", width, height);
}

Rectifier::Rectifier(const StereoRig& given, const RectifyOptions& options) {
  given.validate();
  options.validate();
  StereoRig rig = given;
  if (rig.left.width == 0) {
    check(options.width > 0, ErrorKind::kInput,
          "{}: does not tell the size of the images; it must be given.", rig.source);
    rig.left.width = rig.right.width = options.width;
    rig.left.height = rig.right.height = options.height;
  }
  // Each camera turns half the way to the other's direction, and both then such that their
  // rows lie along the baseline.
  Vector3 half = rotation_vector(rig.rotation);
  for (double& value : half) value *= -0.5;
  const Matrix3 right_half = rotation_matrix(half);
  const Vector3 t = product(right_half, rig.translation);
  const double baseline = length(t);
  // The shortest rotation of -t onto +x.
  const Vector3 along{-t[0] / baseline, -t[1] / baseline, -t[2] / baseline};
  const double sine = std::hypot(along[1], along[2]);
  const double angle = std::atan2(sine, along[0]);
  const double factor = sine > 1e-12 ? angle / sine : 0;
  const Matrix3 turn = rotation_matrix({0, along[2] * factor, -along[1] * factor});
  left_.rotation = product(turn, transposed(right_half));
  right_.rotation = product(turn, right_half);

  Window left_inner, left_outer, right_inner, right_outer;
  see(rig.left, left_.rotation, left_inner, left_outer);
  see(rig.right, right_.rotation, right_inner, right_outer);
  const Window inner = common(left_inner, right_inner);
  const Window window = between(inner, around(left_outer, right_outer), options.alpha);
  check(inner.right - inner.left > 0.02 && inner.bottom - inner.top > 0.02, ErrorKind::kInput,
        "{}: the cameras look in such different directions that nothing is left of the rectified "
        "pair.",
        rig.source);
  Calibration& c = calibration_;
  c.width = options.width > 0 ? options.width : rig.left.width;
  c.height = options.height > 0 ? options.height : rig.left.height;
  const double across = (c.width - 1) / (window.right - window.left),
               down = (c.height - 1) / (window.bottom - window.top);
  // Up to the inner window nothing is black; the outer one is shown whole.
  c.fx = c.fy =
      options.alpha * std::min(across, down) + (1 - options.alpha) * std::max(across, down);
  c.cx = (c.width - 1) / 2.0 - c.fx * (window.left + window.right) / 2;
  c.cy = (c.height - 1) / 2.0 - c.fy * (window.top + window.bottom) / 2;
  c.baseline = baseline;
  c.source = rig.source + ", rectified";
  make_map(rig.left, left_);
  make_map(rig.right, right_);
}

void Rectifier::make_map(const Camera& camera, Side& side) const {
  const Calibration& c = calibration_;
  const auto count = static_cast<std::size_t>(c.width) * static_cast<std::size_t>(c.height);
  side.width = camera.width;
  side.height = camera.height;
  side.x.resize(count);
  side.y.resize(count);
  const Matrix3 back = transposed(side.rotation);
  std::size_t i = 0;
  for (int row = 0; row < c.height; ++row)
    for (int column = 0; column < c.width; ++column, ++i) {
      double x = 0, y = 0;
      const Vector3 ray = product(back, Vector3{(column - c.cx) / c.fx, (row - c.cy) / c.fy, 1});
      const bool seen = camera.project(ray, x, y);
      side.x[i] = seen ? static_cast<float>(std::clamp(x, -1e6, 1e6)) : -1e6f;
      side.y[i] = seen ? static_cast<float>(std::clamp(y, -1e6, 1e6)) : -1e6f;
    }
}

Image Rectifier::apply(const Side& side, const ImageView& view, const char* name) const {
  const Image image = to_rgb8(view, name);
  check(image.width() == side.width && image.height() == side.height, ErrorKind::kInput,
        "{} is {}x{}, but the calibration ({}) holds for {}x{}: give images as the cameras take "
        "them, neither resized nor cropped",
        name, image.width(), image.height(), calibration_.source, side.width, side.height);
  Image result(calibration_.width, calibration_.height);
  const kernels::RemapSource source{image.data(), static_cast<std::ptrdiff_t>(image.row_bytes()),
                                    image.width(), image.height()};
  kernels::remap(source, side.x.data(), side.y.data(), static_cast<int>(side.x.size()),
                 kernels::RemapBorder::kBlack, result.data());
  return result;
}

Image Rectifier::left(const ImageView& image) const {
  return apply(left_, image, "the left image");
}
Image Rectifier::right(const ImageView& image) const {
  return apply(right_, image, "the right image");
}

Projections Rectifier::projections() const {
  const Calibration& c = calibration_;
  return {{c.fx, 0, c.cx, 0, 0, c.fy, c.cy, 0, 0, 0, 1, 0},
          {c.fx, 0, c.cx, -c.fx * c.baseline, 0, c.fy, c.cy, 0, 0, 0, 1, 0},
          {1, 0, 0, -c.cx, 0, 1, 0, -c.cy, 0, 0, 0, c.fx, 0, 0, 1 / c.baseline, 0}};
}

}  // namespace nmrf
