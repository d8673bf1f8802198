// What the cameras of a rig see of flat things: a renderer for tests of calibration.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "geometry/matrix3.h"
#include "nmrf/image.h"
#include "nmrf/rectify.h"

namespace nmrf::test {

// A rectangle in the left camera's frame: `origin` plus u and v metres along the first two columns
// of `rotation`. shade: grey level 0 to 255 at (u, v), negative where there is nothing.
struct Flat {
  Matrix3 rotation{1, 0, 0, 0, 1, 0, 0, 0, 1};
  Vector3 origin{};
  std::function<double(double u, double v)> shade;
};

// Rays of every pixel of a camera, four per pixel, computed once.
class TestCamera {
 public:
  // rotation, translation: from the left camera's frame to this one's.
  TestCamera(const Camera& camera, const Matrix3& rotation, const Vector3& translation)
      : camera_(camera), rotation_(rotation), translation_(translation) {
    for (int y = 0; y < camera.height; ++y)
      for (int x = 0; x < camera.width; ++x)
        for (int i = 0; i < 4; ++i) {
          Vector3 ray{};
          const bool seen = camera.ray(x + 0.5 * (i % 2) - 0.25, y + 0.5 * (i / 2) - 0.25, ray);
          rays_.push_back(seen ? ray : Vector3{0, 0, 0});
        }
  }

  // The nearest thing that each ray hits; grey 90 where there is none. `depth`: of pixel centres.
  Image render(const std::vector<Flat>& things) const {
    Image image(camera_.width, camera_.height);
    for (int y = 0; y < camera_.height; ++y)
      for (int x = 0; x < camera_.width; ++x) {
        double sum = 0;
        for (int i = 0; i < 4; ++i)
          sum += seen(rays_[static_cast<std::size_t>(4 * (y * camera_.width + x) + i)], things);
        const auto grey = static_cast<std::uint8_t>(std::lround(std::clamp(sum / 4, 0.0, 255.0)));
        std::fill_n(image.row(y) + 3 * x, 3, grey);
      }
    return image;
  }

 private:
  double seen(const Vector3& ray, const std::vector<Flat>& things) const {
    if (ray[2] == 0) return 0;
    // The camera's centre and the ray in the left camera's frame.
    const Matrix3 back = transposed(rotation_);
    const Vector3 t = product(back, translation_), d = product(back, ray);
    const Vector3 centre{-t[0], -t[1], -t[2]};
    double nearest = 1e9, grey = 90;
    for (const Flat& flat : things) {
      const Matrix3& r = flat.rotation;
      const Vector3 normal{r[2], r[5], r[8]};
      double along = 0, way = 0;
      for (std::size_t i = 0; i < 3; ++i) {
        along += normal[i] * d[i];
        way += normal[i] * (flat.origin[i] - centre[i]);
      }
      const double s = way / along;
      if (!(s > 0) || s >= nearest) continue;
      double u = 0, v = 0;
      for (std::size_t i = 0; i < 3; ++i) {
        const double at = centre[i] + s * d[i] - flat.origin[i];
        u += r[3 * i] * at;
        v += r[3 * i + 1] * at;
      }
      const double shade = flat.shade(u, v);
      if (shade < 0) continue;
      nearest = s;
      grey = shade;
    }
    return grey;
  }

  Camera camera_;
  Matrix3 rotation_;
  Vector3 translation_;
  std::vector<Vector3> rays_;
};

// Smooth random texture of about `grain` metres.
inline std::function<double(double, double)> texture(std::uint32_t seed, double grain,
                                                     double half_width, double half_height) {
  return [=](double u, double v) {
    if (std::abs(u) > half_width || std::abs(v) > half_height) return -1.0;
    auto level = [&](int i, int j) {
      std::uint32_t h = seed + static_cast<std::uint32_t>(i) * 374761393u +
                        static_cast<std::uint32_t>(j) * 668265263u;
      h = (h ^ (h >> 13)) * 1274126177u;
      return static_cast<double>((h ^ (h >> 16)) & 255);
    };
    const double x = u / grain, y = v / grain;
    const int i = static_cast<int>(std::floor(x)), j = static_cast<int>(std::floor(y));
    const double a = x - i, b = y - j;
    return (level(i, j) * (1 - a) + level(i + 1, j) * a) * (1 - b) +
           (level(i, j + 1) * (1 - a) + level(i + 1, j + 1) * a) * b;
  };
}

// Two cameras as people mount them: different lenses, turned against each other by a few degrees.
inline StereoRig crooked_rig(int width = 480, int height = 360) {
  StereoRig rig;
  rig.left = {0.9 * width,   0.902 * width,  0.49 * width,
              0.51 * height, Lens::kPinhole, {-0.18, 0.05, 0.0008, -0.0005, 0.0},
              width,         height};
  rig.right = {0.91 * width,   0.911 * width,  0.505 * width,
               0.495 * height, Lens::kPinhole, {-0.16, 0.04, -0.0006, 0.0004, 0.0},
               width,          height};
  rig.rotation = rotation_matrix({0.012, -0.03, 0.02});
  rig.translation = {-0.12, 0.004, -0.003};
  rig.source = "a test";
  return rig;
}

}  // namespace nmrf::test
