#include "synth/noise.h"

namespace nmrf::synth {
namespace {

float fade(float t) { return t * t * t * (t * (t * 6 - 15) + 10); }

// Three good bits are enough for a gradient, so one multiplication is.
std::uint32_t light_hash(std::uint32_t h) {
  h = (h ^ (h >> 15)) * 0x2c1b3c6du;
  return h >> 21;
}

// Eight gradients in the plane, picked by three bits.
float slope2(std::uint32_t h, float x, float y) {
  constexpr float kX[8] = {1, -1, 0, 0, 0.7071f, -0.7071f, 0.7071f, -0.7071f};
  constexpr float kY[8] = {0, 0, 1, -1, 0.7071f, 0.7071f, -0.7071f, -0.7071f};
  return kX[h & 7] * x + kY[h & 7] * y;
}

float slope3(std::uint32_t h, float x, float y, float z) {
  // The twelve edge directions of a cube (four of them twice).
  h &= 15;
  float u = h < 8 ? x : y;
  float v = h < 4 ? y : (h == 12 || h == 14 ? x : z);
  return ((h & 1) ? -u : u) + ((h & 2) ? -v : v);
}

}  // namespace

float noise2(float x, float y, std::uint32_t seed) {
  int ix = floor_int(x), iy = floor_int(y);
  float fx = x - static_cast<float>(ix), fy = y - static_cast<float>(iy);
  float u = fade(fx), v = fade(fy);
  constexpr std::uint32_t kStepX = 0x8da6b343u, kStepY = 0xd8163841u;
  std::uint32_t h = static_cast<std::uint32_t>(ix) * kStepX +
                    static_cast<std::uint32_t>(iy) * kStepY + seed * 0x9e3779b9u;
  float a = slope2(light_hash(h), fx, fy);
  float b = slope2(light_hash(h + kStepX), fx - 1, fy);
  float c = slope2(light_hash(h + kStepY), fx, fy - 1);
  float d = slope2(light_hash(h + kStepX + kStepY), fx - 1, fy - 1);
  return 1.5f * mix(mix(a, b, u), mix(c, d, u), v);
}

float noise3(Vec3 p, std::uint32_t seed) {
  int ix = floor_int(p.x), iy = floor_int(p.y), iz = floor_int(p.z);
  float fx = p.x - static_cast<float>(ix), fy = p.y - static_cast<float>(iy),
        fz = p.z - static_cast<float>(iz);
  float u = fade(fx), v = fade(fy), w = fade(fz);
  float corner[8];
  for (int i = 0; i < 8; ++i) {
    int dx = i & 1, dy = (i >> 1) & 1, dz = i >> 2;
    corner[i] = slope3(hash(ix + dx, iy + dy, iz + dz, seed), fx - static_cast<float>(dx),
                       fy - static_cast<float>(dy), fz - static_cast<float>(dz));
  }
  float low = mix(mix(corner[0], corner[1], u), mix(corner[2], corner[3], u), v);
  float high = mix(mix(corner[4], corner[5], u), mix(corner[6], corner[7], u), v);
  return mix(low, high, w);
}

float fractal2(float x, float y, int octaves, float gain, float width, std::uint32_t seed,
               bool ridged) {
  float sum = 0, weight = 1, total = 0;
  for (int i = 0; i < octaves; ++i) {
    float visible = 1 - smooth_step(0.35f, 0.9f, width);
    total += weight;
    if (visible <= 0 && !ridged) {
      // The finer octaves average out; their weight still counts so that contrast does not jump.
      for (int j = i + 1; j < octaves; ++j) total += (weight *= gain);
      break;
    }
    float n = visible > 0 ? noise2(x, y, seed + static_cast<std::uint32_t>(i) * 101u) : 0;
    if (ridged) n = mix(0.47f, 1 - 2 * std::abs(n), visible);  // 0.47: its mean
    sum += weight * n * (ridged ? 1 : visible);
    weight *= gain;
    x = x * 2 + 17.3f, y = y * 2 - 9.1f, width *= 2;
  }
  return sum / std::max(total * 0.75f, 1e-6f);
}

float fractal3(Vec3 p, int octaves, float gain, std::uint32_t seed) {
  float sum = 0, weight = 1, total = 0;
  for (int i = 0; i < octaves; ++i) {
    sum += weight * noise3(p, seed + static_cast<std::uint32_t>(i) * 101u);
    total += weight;
    weight *= gain;
    p = p * 2.f + Vec3{17.3f, -9.1f, 4.7f};
  }
  return sum / std::max(total, 1e-6f);
}

Cell cell2(float x, float y, std::uint32_t seed) {
  int ix = floor_int(x), iy = floor_int(y);
  Cell best;
  float first = 1e9f, second = 1e9f;
  for (int dy = -1; dy <= 1; ++dy)
    for (int dx = -1; dx <= 1; ++dx) {
      std::uint32_t h = hash(ix + dx, iy + dy, seed);
      float px = static_cast<float>(ix + dx) + static_cast<float>(h & 0xffff) * 0x1.0p-16f;
      float py = static_cast<float>(iy + dy) + static_cast<float>(h >> 16) * 0x1.0p-16f;
      float ox = x - px, oy = y - py, d = ox * ox + oy * oy;
      if (d < first) {
        second = first, first = d;
        best.id = h, best.offset = {ox, oy};
      } else if (d < second) {
        second = d;
      }
    }
  best.nearest = std::sqrt(first), best.second = std::sqrt(second);
  return best;
}

}  // namespace nmrf::synth
