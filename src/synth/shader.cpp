#include "synth/shader.h"

#include <algorithm>

#include "synth/noise.h"

namespace nmrf::synth {
namespace {

// Points on a lamp, in its radius: two that tell whether a point may lie in half-shadow, then the
// rest. They are fixed, so that both eyes see the same shadow.
constexpr int kLampPoints = 5;
constexpr int kFirstPoints = 2;
constexpr float kLamp[kLampPoints][2] = {
    {0.7f, 0.5f}, {-0.7f, -0.5f}, {0.f, 0.f}, {-0.5f, 0.75f}, {0.5f, -0.75f}};

float lift(const Hit& hit) { return 2e-4f + 2e-4f * hit.distance * length(hit.direction); }

}  // namespace

void Shader::trace(Packet& packet, bool coherent, float fine, Hit* hits) const {
  caster_.nearest(packet, coherent);
  const auto& ray = packet.rays.ray;
  for (int i = 0; i < kPacket; ++i) {
    if (!packet.active[i]) continue;
    Hit& h = hits[i];
    h = Hit{};
    h.direction = {ray.dir_x[i], ray.dir_y[i], ray.dir_z[i]};
    if (!packet.hit(i)) continue;
    h.hit = true;
    h.distance = packet.distance(i);
    h.triangle = packet.triangle(i);
    h.material = scene_.material_of(h.triangle);
    h.object = scene_.object_of(h.triangle);
    h.point = Vec3{ray.org_x[i], ray.org_y[i], ray.org_z[i]} + h.direction * h.distance;
    const auto& t = scene_.triangles()[h.triangle];
    float b = packet.rays.hit.u[i], c = packet.rays.hit.v[i], a = 1 - b - c;
    const auto &p = scene_.positions(), &n = scene_.normals(), &q = scene_.coords();
    h.flat = normalize(cross(p[t[1]] - p[t[0]], p[t[2]] - p[t[0]]));
    h.normal = normalize(n[t[0]] * a + n[t[1]] * b + n[t[2]] * c);
    float facing = dot(h.flat, h.direction);
    if (facing > 0) h.flat = -h.flat, facing = -facing;
    if (dot(h.normal, h.flat) < 0) h.normal = -h.normal;
    Vec3 coord = q[t[0]] * a + q[t[1]] * b + q[t[2]] * c;
    if (scene_.projected(h.triangle)) {
      Vec3 side = cross(q[t[1]] - q[t[0]], q[t[2]] - q[t[0]]);
      float x = std::abs(side.x), y = std::abs(side.y), z = std::abs(side.z);
      if (x > y && x > z)
        h.uv = {coord.z, coord.y};
      else if (y > z)
        h.uv = {coord.x, coord.z};
      else
        h.uv = {coord.x, coord.y};
    } else {
      h.uv = {coord.x, coord.y};
    }
    float reach = length(h.direction);
    float slant = std::max(-facing / reach, 0.08f);
    h.width = h.distance * reach * spread_ * fine / std::sqrt(slant);
  }
}

Vec3 Shader::dented(const Hit& hit, const Material& material) const {
  float f = material.bump_frequency;
  float left = 1 - smooth_step(0.3f, 0.8f, hit.width * f);
  if (left <= 0) return hit.normal;
  float u = hit.uv.x * f, v = hit.uv.y * f;
  std::uint32_t seed = material.texture.seed + 201;
  auto height = [&](float x, float y) { return 1.3f * noise2(x, y, seed); };
  float base = height(u, v), step = 0.1f;
  Vec3 s, t;
  frame_of(hit.normal, s, t);
  float amount = material.bump * left / step;
  return normalize(hit.normal - s * ((height(u + step, v) - base) * amount) -
                   t * ((height(u, v + step) - base) * amount));
}

void Shader::corners(const Hit* hits, const int* active, float* open) const {
  std::fill(open, open + kPacket, 1.f);
  float radius = scene_.corner_radius;
  if (radius <= 0) return;
  // Four points by four short rays about the normal; fixed directions, faded by distance.
  constexpr int kFirst[4] = {0, 2, 8, 10};  // upper left lane of each 2 x 2
  Packet packet;
  bool any = false;
  for (int q = 0; q < 4; ++q) {
    const Hit& h = hits[kFirst[q]];
    Vec3 s, t;
    if (active[kFirst[q]] && h.hit) frame_of(h.flat, s, t);
    for (int k = 0; k < 4; ++k) {
      int lane = 4 * q + k;
      packet.off(lane);
      if (!active[kFirst[q]] || !h.hit) continue;
      constexpr float kCos[4] = {0.92106f, -0.38942f, -0.92106f, 0.38942f};
      constexpr float kSin[4] = {0.38942f, 0.92106f, -0.38942f, -0.92106f};
      Vec3 d = h.flat * 0.65f + (s * kCos[k] + t * kSin[k]) * 0.76f;
      packet.set(lane, h.point + h.flat * lift(h), d, 0, radius);
      any = true;
    }
  }
  if (!any) return;
  caster_.nearest(packet, false);
  float found[4];
  for (int q = 0; q < 4; ++q) {
    float sum = 0;
    for (int k = 0; k < 4; ++k)
      if (packet.active[4 * q + k] && packet.hit(4 * q + k)) {
        float near = 1 - packet.distance(4 * q + k) / radius;
        sum += near * near;
      }
    found[q] = 1 - 0.22f * sum;
  }
  for (int i = 0; i < kPacket; ++i) {
    if (!active[i] || !hits[i].hit) continue;
    int own = i / 8 * 2 + i % 4 / 2;
    for (int step : {0, 1, 2, 3}) {  // its own 2 x 2 first, then the others
      int q = own ^ step;
      if (active[kFirst[q]] && hits[kFirst[q]].hit && hits[kFirst[q]].object == hits[i].object) {
        open[i] = found[q];
        break;
      }
    }
  }
}

void Shader::light(const Hit* hits, const Vec3* normals, const Vec3* albedo, const int* active,
                   const int* lamp_points, Vec3* colors) const {
  for (const Light& lamp : scene_.lights) {
    float visible[kPacket], facing[kPacket], through[kPacket], far[kPacket];
    Vec3 toward[kPacket];
    bool wanted[kPacket];
    for (int i = 0; i < kPacket; ++i) {
      wanted[i] = false;
      if (!active[i] || !hits[i].hit) continue;
      const Hit& h = hits[i];
      toward[i] = lamp.sun ? lamp.place : lamp.place - h.point;
      far[i] = lamp.sun ? 1e6f : length(toward[i]);
      if (!lamp.sun) toward[i] = toward[i] * (1 / std::max(far[i], 1e-6f));
      facing[i] = dot(normals[i], toward[i]);
      through[i] = scene_.materials()[static_cast<std::size_t>(h.material)].backlight;
      if (dot(h.flat, toward[i]) <= 0 && through[i] <= 0) continue;
      if (facing[i] <= 0 && through[i] <= 0) continue;
      visible[i] = 1;
      wanted[i] = true;
    }
    if (lamp.shadows) {
      int points = lamp.size > 0 && !lamp_points ? kFirstPoints : 1;
      float sum[kPacket] = {};
      int counted[kPacket] = {};
      Vec3 s, t;
      if (lamp.sun)
        frame_of(lamp.place, s, t);
      else
        s = {1, 0, 0}, t = {0, 0, 1};
      auto cast = [&](int from, int to, const bool* lanes) {
        for (int k = from; k < to; ++k) {
          Packet packet;
          bool any = false;
          for (int i = 0; i < kPacket; ++i) {
            if (!lanes[i]) {
              packet.off(i);
              continue;
            }
            const Hit& h = hits[i];
            const float* on_lamp = kLamp[lamp_points ? lamp_points[i] % kLampPoints : k];
            Vec3 shift = (s * on_lamp[0] + t * on_lamp[1]) * lamp.size;
            bool behind = dot(h.flat, toward[i]) < 0;
            Vec3 origin = h.point + h.flat * (behind ? -lift(h) : lift(h));
            Vec3 d = lamp.sun ? lamp.place + shift : lamp.place + shift - origin;
            packet.set(i, origin, d, 0, lamp.sun ? 1e6f : 0.999f);
            any = true;
          }
          if (!any) return;
          caster_.blocked(packet);
          for (int i = 0; i < kPacket; ++i)
            if (lanes[i]) sum[i] += packet.distance(i) < 0 ? 0.f : 1.f, ++counted[i];
        }
      };
      cast(0, points, wanted);
      if (points > 1) {
        bool mixed[kPacket];
        for (int i = 0; i < kPacket; ++i)
          mixed[i] = wanted[i] && sum[i] > 0.5f && sum[i] < kFirstPoints - 0.5f;
        cast(kFirstPoints, kLampPoints, mixed);
      }
      for (int i = 0; i < kPacket; ++i)
        if (wanted[i]) visible[i] = sum[i] / static_cast<float>(std::max(counted[i], 1));
    }
    for (int i = 0; i < kPacket; ++i) {
      if (!wanted[i] || visible[i] <= 0) continue;
      const Material& m = scene_.materials()[static_cast<std::size_t>(hits[i].material)];
      float fall =
          lamp.sun ? 1 : lamp.reach * lamp.reach / (lamp.reach * lamp.reach + far[i] * far[i]);
      Vec3 arriving = lamp.color * (visible[i] * fall);
      float diffuse = std::max(facing[i], 0.f) * (1 - 0.5f * through[i]) +
                      through[i] * std::max(-facing[i], 0.f) + 0.25f * through[i];
      colors[i] += albedo[i] * arriving * diffuse;
      if (m.specular > 0 && facing[i] > 0) {
        Vec3 half = normalize(toward[i] - normalize(hits[i].direction));
        float s = std::pow(std::max(dot(half, normals[i]), 0.f), m.shininess);
        colors[i] += arriving * (m.specular * s);
      }
    }
  }
}

void Shader::second_rays(const Hit* hits, const Vec3* normals, const int* active,
                         Vec3* colors) const {
  Packet packet;
  bool any = false;
  for (int i = 0; i < kPacket; ++i) {
    packet.off(i);
    if (!active[i] || !hits[i].hit) continue;
    const Hit& h = hits[i];
    const Material& m = scene_.materials()[static_cast<std::size_t>(h.material)];
    if (m.mirror <= 0 && m.glass <= 0) continue;
    any = true;
    Vec3 d = normalize(h.direction);
    if (m.mirror > 0) {
      Vec3 r = d - normals[i] * (2 * dot(d, normals[i]));
      if (dot(r, h.flat) < 0.01f) r = normalize(r + h.flat * (0.02f - dot(r, h.flat)));
      packet.set(i, h.point + h.flat * lift(h), r, 0, 1e6f);
    } else {
      // A little refraction, so that what lies behind is seen displaced.
      packet.set(i, h.point - h.flat * lift(h), normalize(d - h.normal * 0.08f), 0, 1e6f);
    }
  }
  if (!any) return;
  Hit behind[kPacket];
  Vec3 seen[kPacket];
  trace(packet, false, 1, behind);
  for (int i = 0; i < kPacket; ++i)
    if (packet.active[i] && behind[i].hit)
      behind[i].width += hits[i].distance * length(hits[i].direction) * spread_;
  shade(behind, packet.active, nullptr, nullptr, seen, nullptr, 1);
  for (int i = 0; i < kPacket; ++i) {
    if (!packet.active[i]) continue;
    const Material& m = scene_.materials()[static_cast<std::size_t>(hits[i].material)];
    float grazing = 1 + dot(normalize(hits[i].direction), normals[i]);
    float share = m.mirror > 0 ? m.mirror * (0.45f + 0.55f * grazing * grazing) : m.glass;
    colors[i] = mix(colors[i], seen[i], clamp01(share));
  }
}

void Shader::shade(const Hit* hits, const int* active, const float* open, const int* lamp_points,
                   Vec3* colors, Vec3* bare) const {
  shade(hits, active, open, lamp_points, colors, bare, 0);
}

void Shader::shade(const Hit* hits, const int* active, const float* open, const int* lamp_points,
                   Vec3* colors, Vec3* bare, int depth) const {
  Vec3 normals[kPacket], albedo[kPacket];
  for (int i = 0; i < kPacket; ++i) {
    if (!active[i]) continue;
    const Hit& h = hits[i];
    if (!h.hit) {
      colors[i] = scene_.sky.color(h.direction);
      if (bare) bare[i] = colors[i];
      continue;
    }
    const Material& m = scene_.materials()[static_cast<std::size_t>(h.material)];
    normals[i] = m.bump > 0 ? dented(h, m) : h.normal;
    albedo[i] = m.texture.color(h.uv, h.width);
    Vec3 around = mix(scene_.sky.ground, mix(scene_.sky.zenith, scene_.sky.horizon, 0.6f),
                      0.5f + 0.5f * normals[i].y);
    colors[i] =
        albedo[i] * around * scene_.ambient_tint * (scene_.ambient * (open ? open[i] : 1.f));
    if (bare) bare[i] = albedo[i];
    if (m.emission > 0) colors[i] += albedo[i] * m.emission;
  }
  light(hits, normals, albedo, active, lamp_points, colors);
  if (depth == 0) second_rays(hits, normals, active, colors);
  if (scene_.fog > 0)
    for (int i = 0; i < kPacket; ++i)
      if (active[i] && hits[i].hit)
        colors[i] = mix(scene_.fog_color, colors[i],
                        std::exp(-scene_.fog * hits[i].distance * length(hits[i].direction)));
}

}  // namespace nmrf::synth
