// Small vectors, colours and rigid transforms for the renderer.
#pragma once

#include <algorithm>
#include <cmath>

namespace nmrf::synth {

inline constexpr float kPi = 3.14159265358979f;

struct Vec2 {
  float x = 0, y = 0;
};
inline Vec2 operator+(Vec2 a, Vec2 b) { return {a.x + b.x, a.y + b.y}; }
inline Vec2 operator-(Vec2 a, Vec2 b) { return {a.x - b.x, a.y - b.y}; }
inline Vec2 operator*(Vec2 a, float s) { return {a.x * s, a.y * s}; }

// A point, a direction, or a linear colour (x = red, y = green, z = blue).
struct Vec3 {
  float x = 0, y = 0, z = 0;
  Vec3& operator+=(Vec3 b) {
    x += b.x, y += b.y, z += b.z;
    return *this;
  }
};
inline Vec3 operator+(Vec3 a, Vec3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
inline Vec3 operator-(Vec3 a, Vec3 b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
inline Vec3 operator-(Vec3 a) { return {-a.x, -a.y, -a.z}; }
inline Vec3 operator*(Vec3 a, float s) { return {a.x * s, a.y * s, a.z * s}; }
inline Vec3 operator*(float s, Vec3 a) { return a * s; }
inline Vec3 operator*(Vec3 a, Vec3 b) { return {a.x * b.x, a.y * b.y, a.z * b.z}; }
inline float dot(Vec3 a, Vec3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
inline Vec3 cross(Vec3 a, Vec3 b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
inline float length(Vec3 a) { return std::sqrt(dot(a, a)); }
inline Vec3 normalize(Vec3 a) {
  float l = length(a);
  return l > 0 ? a * (1 / l) : Vec3{0, 1, 0};
}
inline float mix(float a, float b, float t) { return a + (b - a) * t; }
inline Vec3 mix(Vec3 a, Vec3 b, float t) { return a + (b - a) * t; }
inline float clamp01(float t) { return std::clamp(t, 0.f, 1.f); }
inline float luminance(Vec3 c) { return 0.2126f * c.x + 0.7152f * c.y + 0.0722f * c.z; }
// 0 below `low`, 1 above `high`, smooth between.
inline float smooth_step(float low, float high, float t) {
  t = clamp01((t - low) / std::max(high - low, 1e-9f));
  return t * t * (3 - 2 * t);
}

// A rotation with one uniform scale (the columns) and a shift. The world has y up.
struct Transform {
  Vec3 x{1, 0, 0}, y{0, 1, 0}, z{0, 0, 1}, shift{};

  Vec3 direction(Vec3 v) const { return x * v.x + y * v.y + z * v.z; }
  Vec3 point(Vec3 p) const { return direction(p) + shift; }
  float scale() const { return length(x); }

  static Transform move(Vec3 by) { return {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, by}; }
  static Transform scaled(float s) { return {{s, 0, 0}, {0, s, 0}, {0, 0, s}, {}}; }
  // Right-handed turns by `angle` radians.
  static Transform turn_x(float angle) {
    float c = std::cos(angle), s = std::sin(angle);
    return {{1, 0, 0}, {0, c, s}, {0, -s, c}, {}};
  }
  static Transform turn_y(float angle) {
    float c = std::cos(angle), s = std::sin(angle);
    return {{c, 0, -s}, {0, 1, 0}, {s, 0, c}, {}};
  }
  static Transform turn_z(float angle) {
    float c = std::cos(angle), s = std::sin(angle);
    return {{c, s, 0}, {-s, c, 0}, {0, 0, 1}, {}};
  }
};
// First b, then a.
inline Transform operator*(const Transform& a, const Transform& b) {
  return {a.direction(b.x), a.direction(b.y), a.direction(b.z), a.point(b.shift)};
}

// Two unit vectors that make a right-handed frame with the unit vector `n`.
inline void frame_of(Vec3 n, Vec3& s, Vec3& t) {
  s = normalize(std::abs(n.x) > 0.7f ? cross({0, 1, 0}, n) : cross({1, 0, 0}, n));
  t = cross(n, s);
}

}  // namespace nmrf::synth
