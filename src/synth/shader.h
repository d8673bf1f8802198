// Light and colour at the points that rays hit.
#pragma once

#include "synth/caster.h"

namespace nmrf::synth {

// Where a ray met the scene. Without a hit only `direction` counts.
struct Hit {
  bool hit = false;
  float distance = 0;  // ray parameter; the depth for camera rays
  Vec3 direction;      // of the ray, as given
  Vec3 point;
  Vec3 flat;    // normal of the triangle, unit, towards the viewer
  Vec3 normal;  // smooth normal, unit, on the same side
  Vec2 uv;
  float width = 0;  // of a pixel on the surface, metres
  std::uint32_t triangle = 0;
  int material = 0;
  int object = 0;
};

class Shader {
 public:
  // `spread`: angle of a pixel, radians.
  Shader(const Scene& scene, const Caster& caster, float spread)
      : scene_(scene), caster_(caster), spread_(spread) {}

  // Traces the packet's active lanes and fills `hits` for them. `fine` scales the width of a pixel
  // (less than 1 when several rays share one).
  void trace(Packet& packet, bool coherent, float fine, Hit* hits) const;
  // Colours (linear) of the hits of the lanes that are on.
  //   open: how much of the light from everywhere reaches each hit, from corners(); null = all
  //   lamp_points: which point of every lamp each lane looks at, where many rays share a pixel;
  //                null = as many as the shadow needs
  //   bare: receives the colour of the surface itself, without light; may be null
  void shade(const Hit* hits, const int* active, const float* open, const int* lamp_points,
             Vec3* colors, Vec3* bare = nullptr) const;
  // Darkening in corners, 1 = open. The lanes are a block of 4 x 4 pixels; one lane of each 2 x 2
  // is examined and the others of the same object follow it.
  void corners(const Hit* hits, const int* active, float* open) const;

 private:
  void shade(const Hit* hits, const int* active, const float* open, const int* lamp_points,
             Vec3* colors, Vec3* bare, int depth) const;
  void light(const Hit* hits, const Vec3* normals, const Vec3* albedo, const int* active,
             const int* lamp_points, Vec3* colors) const;
  void second_rays(const Hit* hits, const Vec3* normals, const int* active, Vec3* colors) const;
  Vec3 dented(const Hit& hit, const Material& material) const;

  const Scene& scene_;
  const Caster& caster_;
  float spread_;
};

}  // namespace nmrf::synth
