#include "synth/scene.h"

#include "synth/noise.h"

namespace nmrf::synth {

Vec3 Sky::color(Vec3 direction) const {
  Vec3 d = normalize(direction);
  if (d.y < 0) return mix(horizon, ground, smooth_step(0, 0.15f, -d.y));
  Vec3 c = mix(horizon, zenith, std::pow(d.y, 0.6f));
  if (clouds > 0) {
    float height = 1 / (d.y + 0.12f);
    float n = fractal2(d.x * height * cloud_size, d.z * height * cloud_size, 5, 0.55f,
                       0.004f * height * height * cloud_size, seed);
    float cover = smooth_step(0.45f - clouds, 0.95f - clouds, n);
    Vec3 white = mix(horizon, Vec3{1, 1, 1}, 0.6f) * (1.05f - 0.35f * clouds);
    c = mix(c, white, cover * smooth_step(0, 0.12f, d.y));
  }
  if (glow > 0) {
    float s = std::max(0.f, dot(d, sun));
    c += Vec3{1, 0.95f, 0.85f} * (glow * (0.25f * std::pow(s, 8.f) + 3 * std::pow(s, 600.f)));
  }
  return c;
}

int Scene::add_material(Material material) {
  materials_.push_back(std::move(material));
  return static_cast<int>(materials_.size()) - 1;
}

int Scene::add(const Mesh& mesh, const Transform& transform, int material, int object) {
  int groups = 1;
  for (int g : mesh.groups) groups = std::max(groups, g + 1);
  if (object == 0 || groups > 1) {
    object = next_object_;
    next_object_ += groups;
  }
  auto base = static_cast<std::uint32_t>(positions_.size());
  float scale = transform.scale();
  for (std::size_t i = 0; i < mesh.positions.size(); ++i) {
    positions_.push_back(transform.point(mesh.positions[i]));
    normals_.push_back(normalize(transform.direction(mesh.normals[i])));
    coords_.push_back(mesh.coords[i] * scale);
  }
  for (std::size_t i = 0; i < mesh.triangles.size(); ++i) {
    const auto& t = mesh.triangles[i];
    triangles_.push_back({t[0] + base, t[1] + base, t[2] + base});
    objects_.push_back(object + (mesh.groups.empty() ? 0 : mesh.groups[i]));
    material_ids_.push_back(2 * material + (mesh.projected ? 1 : 0));
  }
  return object;
}

}  // namespace nmrf::synth
