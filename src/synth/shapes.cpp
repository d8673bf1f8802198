// The random shapes of mesh.h: outlines, folds, leaves.
#include "synth/mesh.h"
#include "synth/noise.h"

namespace nmrf::synth {
namespace {

std::vector<Vec2> polar(int corners, const std::function<float(int)>& radius, float phase = 0) {
  std::vector<Vec2> out;
  for (int i = 0; i < corners; ++i) {
    float a = 2 * kPi * static_cast<float>(i) / static_cast<float>(corners) + phase;
    out.push_back(Vec2{std::cos(a), std::sin(a)} * (0.5f * radius(i)));
  }
  return out;
}

}  // namespace

std::vector<Vec2> random_outline(Dice& dice) {
  float a = dice.real(0.15, 0.45), b = dice.real(0.15, 0.45);
  switch (dice.count(0, 9)) {
    case 0:
      return polar(
          dice.count(3, 8), [](int) { return 1.f; }, dice.real(0, 6.28));
    case 1: {  // star
      float inner = dice.real(0.3, 0.7);
      return polar(2 * dice.count(4, 9), [&](int i) { return i % 2 ? inner : 1.f; });
    }
    case 2:
      return polar(dice.count(7, 24), [&](int) { return dice.real(0.45, 1); });
    case 3: {  // rounded blob
      float p = dice.real(0, 6.28), q = dice.real(0, 6.28);
      return polar(32, [&](int i) {
        float t = 2 * kPi * static_cast<float>(i) / 32;
        return 0.75f + a * 0.35f * std::sin(2 * t + p) + b * 0.35f * std::sin(3 * t + q);
      });
    }
    case 4:  // L
      return {{-0.5f, -0.5f},         {0.5f, -0.5f},     {0.5f, -0.5f + a},
              {-0.5f + b, -0.5f + a}, {-0.5f + b, 0.5f}, {-0.5f, 0.5f}};
    case 5:  // T
      return {{-0.5f, 0.5f - a}, {-b / 2, 0.5f - a}, {-b / 2, -0.5f}, {b / 2, -0.5f},
              {b / 2, 0.5f - a}, {0.5f, 0.5f - a},   {0.5f, 0.5f},    {-0.5f, 0.5f}};
    case 6:  // U
      return {{-0.5f, -0.5f},
              {0.5f, -0.5f},
              {0.5f, 0.5f},
              {0.5f - a * 0.8f, 0.5f},
              {0.5f - a * 0.8f, -0.5f + b},
              {-0.5f + a * 0.8f, -0.5f + b},
              {-0.5f + a * 0.8f, 0.5f},
              {-0.5f, 0.5f}};
    case 7:  // cross
      return {{-a / 2, -0.5f}, {a / 2, -0.5f}, {a / 2, -b / 2}, {0.5f, -b / 2},
              {0.5f, b / 2},   {a / 2, b / 2}, {a / 2, 0.5f},   {-a / 2, 0.5f},
              {-a / 2, b / 2}, {-0.5f, b / 2}, {-0.5f, -b / 2}, {-a / 2, -b / 2}};
    case 8: {  // gear
      int teeth = dice.count(6, 14);
      float depth = dice.real(0.65, 0.88);
      return polar(4 * teeth, [&](int i) { return i % 4 < 2 ? 1.f : depth; });
    }
    default:
      return {{-0.5f, -a}, {0.5f, -a}, {0.5f, a}, {-0.5f, a}};
  }
}

Mesh folded_sheet(Dice& dice, float width, float height, float depth) {
  std::uint32_t seed = dice.bits();
  float folds = dice.log_real(1.5, 8), cross_folds = dice.real(0.2, 1.5), sharp = dice.real(0, 1);
  float angle = dice.real(-0.5, 0.5);
  return surface(48, 28,
                 [&](float s, float t) {
                   float u = s * folds + t * angle * folds, v = t * cross_folds;
                   float wave = fractal2(u, v, 3, 0.45f, 0, seed);
                   float crease = 1 - 2 * std::abs(noise2(u * 0.7f + 9, v * 1.7f, seed + 3));
                   float z = depth * mix(wave, 0.8f * crease, 0.6f * sharp);
                   return Vec3{(s - 0.5f) * width, (t - 0.5f) * height, z};
                 },
                 {width, height});
}

Mesh leaf_cloud(Dice& dice, Vec3 radius, int count, float leaf) {
  Mesh mesh;
  float narrow = dice.real(0.35, 0.8);
  // Leaves gather in a few clumps, so that the sky shows between them.
  std::vector<Vec3> clumps;
  for (int i = dice.count(5, 14); i > 0; --i) clumps.push_back(dice.unit() * dice.real(0.2, 0.75));
  for (int i = 0; i < count; ++i) {
    Vec3 c = clumps[static_cast<std::size_t>(dice.count(0, static_cast<int>(clumps.size()) - 1))];
    Vec3 p = c + dice.unit() * (0.45f * std::cbrt(dice.real(0, 1)));
    p = p * radius;
    Vec3 n = normalize(dice.unit() + Vec3{0, 0.6f, 0}), s, t;
    frame_of(n, s, t);
    float turn = dice.real(0, 6.28);
    Vec3 along = s * std::cos(turn) + t * std::sin(turn), across = cross(n, along);
    float l = leaf * dice.real(0.6, 1.3), w = l * narrow * 0.5f;
    // Shade normals lean outwards, which lights the crown like a body.
    Vec3 shade = normalize(n * 0.6f + normalize(p));
    auto a = mesh.vertex(p - along * (l / 2), shade, {p.x, p.y + p.z, 0});
    auto b = mesh.vertex(p + across * w, shade, {p.x + w, p.y + p.z, 0});
    auto d = mesh.vertex(p + along * (l / 2), shade, {p.x, p.y + p.z + l, 0});
    auto e = mesh.vertex(p - across * w, shade, {p.x - w, p.y + p.z, 0});
    mesh.triangles.push_back({a, b, d});
    mesh.triangles.push_back({a, d, e});
    mesh.groups.push_back(i), mesh.groups.push_back(i);
  }
  return mesh;
}

Mesh blades(Dice& dice, int count, float length, float width, float spread) {
  Mesh mesh;
  for (int i = 0; i < count; ++i) {
    float turn = dice.real(0, 2 * kPi), lean = dice.real(0.1, 1) * spread,
          bend = dice.real(0.2, 1.6);
    float l = length * dice.real(0.6, 1.1), w = width * dice.real(0.7, 1.2);
    Vec3 out{std::cos(turn), 0, std::sin(turn)}, side{-std::sin(turn), 0, std::cos(turn)};
    Vec3 root = out * (0.1f * length * spread * dice.real(0, 1));
    Mesh blade = surface(
        2, 7,
        [&](float s, float t) {
          float angle = lean + bend * spread * t;
          Vec3 spine =
              root + (out * std::sin(0.7f * angle) + Vec3{0, std::cos(0.7f * angle), 0}) * (l * t);
          float half = 0.5f * w * (1 - 0.97f * t * t);
          float keel = s == 0.5f ? -0.2f * w * (1 - t) : 0;
          return spine + side * ((2 * s - 1) * half) + Vec3{0, keel, 0};
        },
        {w, l});
    int triangles = static_cast<int>(blade.triangles.size());
    blade.groups.assign(static_cast<std::size_t>(triangles), 0);
    mesh.append(blade, {});
  }
  return mesh;
}

}  // namespace nmrf::synth
