// Lattice noise: the raw material of the procedural textures and of displaced shapes.
#pragma once

#include <cstdint>

#include "synth/vec.h"

namespace nmrf::synth {

inline std::uint32_t hash(std::uint32_t x, std::uint32_t seed) {
  x ^= seed * 0x9e3779b9u;
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}
inline std::uint32_t hash(int x, int y, std::uint32_t seed) {
  return hash(
      static_cast<std::uint32_t>(x) * 0x8da6b343u + static_cast<std::uint32_t>(y) * 0xd8163841u,
      seed);
}
inline std::uint32_t hash(int x, int y, int z, std::uint32_t seed) {
  return hash(static_cast<std::uint32_t>(x) * 0x8da6b343u +
                  static_cast<std::uint32_t>(y) * 0xd8163841u +
                  static_cast<std::uint32_t>(z) * 0xcb1ab31fu,
              seed);
}
// In [0, 1).
inline float unit_of(std::uint32_t h) { return static_cast<float>(h >> 8) * 0x1.0p-24f; }
// floor() as an integer, saturated so that a wild coordinate cannot overflow.
inline int floor_int(float v) {
  v = std::min(std::max(v, -1e9f), 1e9f);
  int i = static_cast<int>(v);
  return i - (v < static_cast<float>(i));
}

// Smooth noise in [-1, 1] with features of size 1.
float noise2(float x, float y, std::uint32_t seed);
float noise3(Vec3 p, std::uint32_t seed);

// Sum of octaves in about [-1, 1]; octave i has frequency 2^i and weight gain^i. `width` is the
// size of a pixel in the same units: octaves finer than it fade out. `ridged` folds each octave.
float fractal2(float x, float y, int octaves, float gain, float width, std::uint32_t seed,
               bool ridged = false);
float fractal3(Vec3 p, int octaves, float gain, std::uint32_t seed);

// The nearest of one random point per unit cell.
struct Cell {
  float nearest = 0;  // distance to it
  float second = 0;   // distance to the second nearest
  std::uint32_t id = 0;
  Vec2 offset;  // from the point to (x, y)
};
Cell cell2(float x, float y, std::uint32_t seed);

}  // namespace nmrf::synth
