// Triangle meshes and the basic shapes. Lengths are metres, y is up.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "synth/dice.h"
#include "synth/vec.h"

namespace nmrf::synth {

struct Mesh {
  std::vector<Vec3> positions;
  std::vector<Vec3> normals;  // unit, one per vertex
  // Texture coordinates, one per vertex: (u, v, 0) in metres, or, when `projected`, the position at
  // rest, which is then projected along the main axis of each triangle.
  std::vector<Vec3> coords;
  std::vector<std::array<std::uint32_t, 3>> triangles;
  std::vector<int>
      groups;  // per triangle, counted from 0; empty = one group. Each is an object id.
  bool projected = false;

  std::uint32_t vertex(Vec3 position, Vec3 normal, Vec3 coord) {
    positions.push_back(position), normals.push_back(normal), coords.push_back(coord);
    return static_cast<std::uint32_t>(positions.size() - 1);
  }
  // A flat quad a, b, c, d (in this order around); texture axes along ab and ad.
  void quad(Vec3 a, Vec3 b, Vec3 c, Vec3 d);
  // Appends `other`, moved; both must be projected or both not.
  void append(const Mesh& other, const Transform& transform);
};

// Grid of (columns + 1) x (rows + 1) points `at(s, t)` with s, t in [0, 1], smooth normals;
// `around` joins s = 1 to s = 0. `size` is the extent of the texture coordinates.
Mesh surface(int columns, int rows, const std::function<Vec3(float, float)>& at, Vec2 size,
             bool around = false);

Mesh box(Vec3 size);                        // centred
Mesh rectangle(float width, float height);  // in the x-y plane, centred, facing -z
Mesh ellipsoid(Vec3 radius, int detail = 20);
// |x/rx|^(2/e2) + ... = 1: boxes (small exponents), balls (1), diamonds (2), stars (larger).
Mesh superquadric(Vec3 radius, float e1, float e2, int detail = 28);
Mesh torus(float radius, float thickness, int detail = 32);
// A profile (radius, height) turned about the y axis.
Mesh lathe(const std::vector<Vec2>& profile, int segments = 28, bool smooth = true);
Mesh cylinder(float radius, float height, int segments = 20);  // on y = 0, closed
Mesh cone(float radius, float top, float height, int segments = 20);
// A simple polygon in the x-y plane, extruded along z, centred in z.
Mesh extrusion(const std::vector<Vec2>& outline, float depth);
// A tube along `path`; the radius runs from `start` to `end`.
Mesh tube(const std::vector<Vec3>& path, float start, float end, int segments = 8);
// y = height(x, z) over a rectangle centred at the origin.
Mesh height_field(float width, float depth, int columns, int rows,
                  const std::function<float(float, float)>& height);
// A ball dented by noise: rocks, bread, heads of lettuce.
Mesh blob(Dice& dice, Vec3 radius, float roughness, int detail = 28);

// Outlines for extrusions and flat layers, about unit size.
std::vector<Vec2> random_outline(Dice& dice);
// A hanging or lying sheet with folds, in the x-y plane.
Mesh folded_sheet(Dice& dice, float width, float height, float depth);
// `count` leaves scattered in an ellipsoid; every leaf is its own group.
Mesh leaf_cloud(Dice& dice, Vec3 radius, int count, float leaf);
// Bent, pointed blades that start near the origin: aloe, grass, palm.
Mesh blades(Dice& dice, int count, float length, float width, float spread);

}  // namespace nmrf::synth
