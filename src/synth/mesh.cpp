#include "synth/mesh.h"

#include <algorithm>

#include "synth/noise.h"

namespace nmrf::synth {

void Mesh::quad(Vec3 a, Vec3 b, Vec3 c, Vec3 d) {
  Vec3 n = normalize(cross(b - a, d - a));
  float width = length(b - a), height = length(d - a);
  Vec3 along = normalize(b - a), up = normalize(d - a);
  auto coord = [&](Vec3 p) -> Vec3 {
    return projected ? p : Vec3{dot(p - a, along), dot(p - a, up), 0};
  };
  auto ia = vertex(a, n, coord(a)), ib = vertex(b, n, projected ? b : Vec3{width, 0, 0});
  auto ic = vertex(c, n, coord(c)), id = vertex(d, n, projected ? d : Vec3{0, height, 0});
  triangles.push_back({ia, ib, ic});
  triangles.push_back({ia, ic, id});
}

void Mesh::append(const Mesh& other, const Transform& transform) {
  auto base = static_cast<std::uint32_t>(positions.size());
  int group_base = 0;
  if (!other.groups.empty() || !groups.empty()) {
    groups.resize(triangles.size(), 0);
    for (int g : groups) group_base = std::max(group_base, g + 1);
  }
  float scale = transform.scale();
  for (std::size_t i = 0; i < other.positions.size(); ++i)
    vertex(transform.point(other.positions[i]), normalize(transform.direction(other.normals[i])),
           other.coords[i] * scale);
  for (std::size_t i = 0; i < other.triangles.size(); ++i) {
    const auto& t = other.triangles[i];
    triangles.push_back({t[0] + base, t[1] + base, t[2] + base});
    if (!other.groups.empty())
      groups.push_back(group_base + other.groups[i]);
    else if (!groups.empty())
      groups.push_back(group_base);
  }
}

Mesh surface(int columns, int rows, const std::function<Vec3(float, float)>& at, Vec2 size,
             bool around) {
  Mesh mesh;
  int stride = columns + 1;
  for (int j = 0; j <= rows; ++j)
    for (int i = 0; i <= columns; ++i) {
      float s = static_cast<float>(i) / static_cast<float>(columns);
      float t = static_cast<float>(j) / static_cast<float>(rows);
      mesh.vertex(at(around && i == columns ? 0.f : s, t), {}, {s * size.x, t * size.y, 0});
    }
  auto index = [&](int i, int j) { return static_cast<std::uint32_t>(j * stride + i); };
  auto add = [&](std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    Vec3 n = cross(mesh.positions[b] - mesh.positions[a], mesh.positions[c] - mesh.positions[a]);
    if (dot(n, n) < 1e-24f) return;  // the pole of a ball
    mesh.triangles.push_back({a, b, c});
    mesh.normals[a] += n, mesh.normals[b] += n, mesh.normals[c] += n;
  };
  for (int j = 0; j < rows; ++j)
    for (int i = 0; i < columns; ++i) {
      add(index(i, j), index(i + 1, j), index(i + 1, j + 1));
      add(index(i, j), index(i + 1, j + 1), index(i, j + 1));
    }
  if (around)
    for (int j = 0; j <= rows; ++j) {
      Vec3 n = mesh.normals[index(0, j)] + mesh.normals[index(columns, j)];
      mesh.normals[index(0, j)] = mesh.normals[index(columns, j)] = n;
    }
  for (auto& n : mesh.normals) n = normalize(n);
  return mesh;
}

Mesh box(Vec3 size) {
  Mesh mesh;
  float x = size.x / 2, y = size.y / 2, z = size.z / 2;
  mesh.quad({x, -y, -z}, {-x, -y, -z}, {-x, y, -z}, {x, y, -z});
  mesh.quad({-x, -y, z}, {x, -y, z}, {x, y, z}, {-x, y, z});
  mesh.quad({-x, -y, -z}, {-x, -y, z}, {-x, y, z}, {-x, y, -z});
  mesh.quad({x, -y, z}, {x, -y, -z}, {x, y, -z}, {x, y, z});
  mesh.quad({-x, y, z}, {x, y, z}, {x, y, -z}, {-x, y, -z});
  mesh.quad({-x, -y, -z}, {x, -y, -z}, {x, -y, z}, {-x, -y, z});
  return mesh;
}

Mesh rectangle(float width, float height) {
  Mesh mesh;
  float x = width / 2, y = height / 2;
  mesh.quad({-x, -y, 0}, {x, -y, 0}, {x, y, 0}, {-x, y, 0});
  return mesh;
}

Mesh superquadric(Vec3 radius, float e1, float e2, int detail) {
  // Rounding leaves 1e-8 where zero is meant, and a small exponent would make a hole of that.
  auto power = [](float v, float e) {
    return std::abs(v) < 1e-6f ? 0.f : std::copysign(std::pow(std::abs(v), e), v);
  };
  Mesh mesh = surface(
      detail, detail / 2,
      [&](float s, float t) {
        float phi = 2 * kPi * s, theta = kPi * (t - 0.5f);
        float ring = power(std::cos(theta), e1);
        return Vec3{radius.x * ring * power(std::cos(phi), e2),
                    radius.y * power(std::sin(theta), e1),
                    radius.z * ring * power(std::sin(phi), e2)};
      },
      {1, 1}, true);
  mesh.projected = true;
  mesh.coords = mesh.positions;
  return mesh;
}

Mesh ellipsoid(Vec3 radius, int detail) { return superquadric(radius, 1, 1, detail); }

Mesh torus(float radius, float thickness, int detail) {
  return surface(
      detail, std::max(6, detail / 3),
      [&](float s, float t) {
        float phi = 2 * kPi * s, theta = 2 * kPi * t;
        if (t >= 1) theta = 0;
        float ring = radius + thickness * std::cos(theta);
        return Vec3{ring * std::cos(phi), thickness * std::sin(theta), ring * std::sin(phi)};
      },
      {2 * kPi * radius, 2 * kPi * thickness}, true);
}

Mesh lathe(const std::vector<Vec2>& profile, int segments, bool smooth) {
  Mesh mesh;
  float widest = 0, total = 0;
  for (auto p : profile) widest = std::max(widest, p.x);
  std::vector<float> along{0};
  for (std::size_t j = 1; j < profile.size(); ++j) {
    Vec2 d = profile[j] - profile[j - 1];
    along.push_back(total += std::sqrt(d.x * d.x + d.y * d.y));
  }
  if (smooth) {
    int rows = static_cast<int>(profile.size()) - 1;
    mesh = surface(
        segments, rows,
        [&](float s, float t) {
          Vec2 p = profile[static_cast<std::size_t>(std::lround(t * static_cast<float>(rows)))];
          return Vec3{p.x * std::cos(2 * kPi * s), p.y, p.x * std::sin(2 * kPi * s)};
        },
        {2 * kPi * widest, 1}, true);
    for (std::size_t i = 0; i < mesh.coords.size(); ++i)
      mesh.coords[i].y = along[i / static_cast<std::size_t>(segments + 1)];
    return mesh;
  }
  for (std::size_t j = 0; j + 1 < profile.size(); ++j) {
    Mesh band = lathe({profile[j], profile[j + 1]}, segments, true);
    for (auto& c : band.coords) c.y += along[j];
    mesh.append(band, {});
  }
  return mesh;
}

Mesh cylinder(float radius, float height, int segments) {
  return lathe({{0, 0}, {radius, 0}, {radius, height}, {0, height}}, segments, false);
}

Mesh cone(float radius, float top, float height, int segments) {
  return lathe({{0, 0}, {radius, 0}, {top, height}, {0, height}}, segments, false);
}

namespace {

float area2(Vec2 a, Vec2 b, Vec2 c) {
  return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

// Ear clipping; the outline runs counter-clockwise.
std::vector<std::array<std::uint32_t, 3>> triangulate(const std::vector<Vec2>& outline) {
  std::vector<std::uint32_t> rest;
  for (std::size_t i = 0; i < outline.size(); ++i) rest.push_back(static_cast<std::uint32_t>(i));
  std::vector<std::array<std::uint32_t, 3>> out;
  while (rest.size() > 2) {
    bool clipped = false;
    for (std::size_t i = 0; i < rest.size() && !clipped; ++i) {
      auto a = rest[(i + rest.size() - 1) % rest.size()], b = rest[i],
           c = rest[(i + 1) % rest.size()];
      if (area2(outline[a], outline[b], outline[c]) <= 0) continue;
      bool empty = true;
      for (auto p : rest) {
        if (p == a || p == b || p == c) continue;
        if (area2(outline[a], outline[b], outline[p]) >= 0 &&
            area2(outline[b], outline[c], outline[p]) >= 0 &&
            area2(outline[c], outline[a], outline[p]) >= 0)
          empty = false;
      }
      if (!empty) continue;
      out.push_back({a, b, c});
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
      clipped = true;
    }
    if (!clipped) break;  // self-touching outline: the rest stays open
  }
  return out;
}

}  // namespace

Mesh extrusion(const std::vector<Vec2>& given, float depth) {
  std::vector<Vec2> outline = given;
  float area = 0;
  for (std::size_t i = 0; i < outline.size(); ++i) {
    Vec2 a = outline[i], b = outline[(i + 1) % outline.size()];
    area += a.x * b.y - a.y * b.x;
  }
  if (area < 0) std::reverse(outline.begin(), outline.end());
  Mesh mesh;
  float z = depth / 2;
  for (float side : {-1.f, 1.f}) {
    if (depth <= 0 && side > 0) break;  // a flat piece needs one face
    auto base = static_cast<std::uint32_t>(mesh.positions.size());
    for (auto p : outline) mesh.vertex({p.x, p.y, side * z}, {0, 0, side}, {p.x, p.y, 0});
    for (auto t : triangulate(outline)) {
      if (side < 0) std::swap(t[1], t[2]);
      mesh.triangles.push_back({t[0] + base, t[1] + base, t[2] + base});
    }
  }
  if (depth > 0)
    for (std::size_t i = 0; i < outline.size(); ++i) {
      Vec2 a = outline[i], b = outline[(i + 1) % outline.size()];
      mesh.quad({a.x, a.y, z}, {a.x, a.y, -z}, {b.x, b.y, -z}, {b.x, b.y, z});
    }
  return mesh;
}

Mesh tube(const std::vector<Vec3>& path, float start, float end, int segments) {
  int rows = static_cast<int>(path.size()) - 1;
  float total = 0;
  for (std::size_t i = 1; i < path.size(); ++i) total += length(path[i] - path[i - 1]);
  return surface(
      segments, rows,
      [&](float s, float t) {
        auto i = static_cast<std::size_t>(std::lround(t * static_cast<float>(rows)));
        Vec3 ahead = path[std::min(i + 1, path.size() - 1)] - path[i > 0 ? i - 1 : 0];
        Vec3 u, v;
        frame_of(normalize(ahead), u, v);
        float r = mix(start, end, t), phi = 2 * kPi * s;
        return path[i] + u * (r * std::cos(phi)) + v * (r * std::sin(phi));
      },
      {2 * kPi * std::max(start, end), total}, true);
}

Mesh height_field(float width, float depth, int columns, int rows,
                  const std::function<float(float, float)>& height) {
  return surface(columns, rows,
                 [&](float s, float t) {
                   float x = (s - 0.5f) * width, z = (0.5f - t) * depth;
                   return Vec3{x, height(x, z), z};
                 },
                 {width, depth});
}

Mesh blob(Dice& dice, Vec3 radius, float roughness, int detail) {
  Mesh mesh = ellipsoid({1, 1, 1}, detail);
  std::uint32_t seed = dice.bits();
  float frequency = dice.log_real(0.8, 3);
  float gain = dice.real(0.4, 0.7);
  for (auto& p : mesh.positions) {
    float d = fractal3(p * frequency, 4, gain, seed);
    p = p * radius * (1 + roughness * d);
  }
  // New smooth normals.
  std::fill(mesh.normals.begin(), mesh.normals.end(), Vec3{});
  for (const auto& t : mesh.triangles) {
    Vec3 n = cross(mesh.positions[t[1]] - mesh.positions[t[0]],
                   mesh.positions[t[2]] - mesh.positions[t[0]]);
    for (auto i : t) mesh.normals[i] += n;
  }
  for (auto& n : mesh.normals) n = normalize(n);
  mesh.coords = mesh.positions;
  return mesh;
}

}  // namespace nmrf::synth
