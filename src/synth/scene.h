// A scene: triangles with materials and object ids, lights, sky, and the two cameras.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "synth/material.h"
#include "synth/mesh.h"

namespace nmrf::synth {

struct Light {
  bool sun = false;     // infinitely far
  Vec3 place;           // position, or for a sun the unit vector towards it
  Vec3 color{1, 1, 1};  // linear; for a lamp at one metre times `reach` squared
  float reach = 1;      // metres at which a lamp has half its strength
  float size = 0;       // radius of the lamp, or for a sun its angular radius: soft shadows
  bool shadows = true;
};

// What is seen where no triangle is, and the light that comes from everywhere.
struct Sky {
  Vec3 zenith{0.2f, 0.35f, 0.7f}, horizon{0.7f, 0.75f, 0.8f}, ground{0.2f, 0.18f, 0.15f};
  float clouds = 0;  // cover, 0 to 1
  float cloud_size = 1;
  std::uint32_t seed = 0;
  Vec3 sun{0, 1, 0};  // unit vector; glow around it
  float glow = 0;
  Vec3 color(Vec3 direction) const;
};

// The left camera; the right one stands `baseline` to the right. Columns of `pose`: right, up,
// forward.
struct StereoCamera {
  Transform pose;
  int width = 0, height = 0;
  float focal = 0, cx = 0, cy = 0;  // pixels
  float baseline = 0;               // metres
  float near_depth = 0.01f;         // nothing nearer is seen, metres

  // Through (x, y) in pixels; its component along the optical axis is 1, so the ray parameter is
  // the depth.
  Vec3 ray(float x, float y) const {
    return pose.x * ((x - cx) / focal) - pose.y * ((y - cy) / focal) + pose.z;
  }
  Vec3 center(bool right) const { return right ? pose.shift + pose.x * baseline : pose.shift; }
};

class Scene {
 public:
  using Triangle = std::array<std::uint32_t, 3>;

  int add_material(Material material);
  // A new object id; ids count from 1 (0 is the sky).
  int new_object() { return next_object_++; }
  // Adds the mesh, moved. Without an `object` it gets a new id; each group of the mesh gets its
  // own. Returns the first id used.
  int add(const Mesh& mesh, const Transform& transform, int material, int object = 0);
  int add(const Mesh& mesh, const Transform& transform, Material material, int object = 0) {
    return add(mesh, transform, add_material(std::move(material)), object);
  }

  std::vector<Light> lights;
  Sky sky;
  float ambient = 0.4f;  // strength of the light from everywhere
  Vec3 ambient_tint{1, 1, 1};
  float corner_radius = 0;  // how far corners darken, metres; 0 = not at all
  float fog = 0;            // per metre
  Vec3 fog_color{0.7f, 0.75f, 0.8f};
  float sky_disparity = 0;  // pixels

  const std::vector<Vec3>& positions() const { return positions_; }
  const std::vector<Vec3>& normals() const { return normals_; }
  const std::vector<Vec3>& coords() const { return coords_; }
  const std::vector<Triangle>& triangles() const { return triangles_; }
  const std::vector<Material>& materials() const { return materials_; }
  int object_of(std::uint32_t triangle) const { return objects_[triangle]; }
  int material_of(std::uint32_t triangle) const { return material_ids_[triangle] >> 1; }
  bool projected(std::uint32_t triangle) const { return material_ids_[triangle] & 1; }
  int object_count() const { return next_object_; }

 private:
  std::vector<Vec3> positions_, normals_, coords_;
  std::vector<Triangle> triangles_;
  std::vector<int> objects_;
  std::vector<int> material_ids_;  // twice the index, plus 1 when the mesh is projected
  std::vector<Material> materials_;
  int next_object_ = 1;
};

}  // namespace nmrf::synth
