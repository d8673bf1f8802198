#include "synth/texture.h"

#include <algorithm>

#include "synth/noise.h"

namespace nmrf::synth {
namespace {

// The share of [x - w/2, x + w/2] that lies where frac(x) < duty: a square wave, filtered exactly.
float pulse(float x, float duty, float w) {
  w = std::max(w, 1e-4f);
  auto area = [&](float t) {
    float i = std::floor(t);
    return i * duty + std::min(t - i, duty);
  };
  return (area(x + 0.5f * w) - area(x - 0.5f * w)) / w;
}

// 1 inside (distance below 0), 0 outside, softened over a pixel.
float inside(float distance, float w) { return clamp01(0.5f - distance / std::max(w, 1e-5f)); }
// How much of a detail of size 1 is left when a pixel is `w` wide.
float kept(float w) { return 1 - smooth_step(0.5f, 1.6f, w); }

float segment_distance(Vec2 p, Vec2 a, Vec2 b) {
  Vec2 ab = b - a, ap = p - a;
  float t = clamp01((ap.x * ab.x + ap.y * ab.y) / std::max(ab.x * ab.x + ab.y * ab.y, 1e-9f));
  Vec2 d = ap - ab * t;
  return std::sqrt(d.x * d.x + d.y * d.y);
}

struct Evaluator {
  const Texture& t;
  float x, y, w;  // in cells

  Vec3 ramp(float v) const {
    v = clamp01(v) * 3;
    int i = std::min(static_cast<int>(v), 2);
    auto at = static_cast<std::size_t>(i);
    return mix(t.colors[at], t.colors[at + 1], v - static_cast<float>(i));
  }
  Vec3 any(std::uint32_t h) const { return t.colors[h & 3]; }
  Vec3 mean() const { return (t.colors[0] + t.colors[1] + t.colors[2] + t.colors[3]) * 0.25f; }
  float fractal(float sx, float sy, int octaves, std::uint32_t salt) const {
    return fractal2(x * sx, y * sy, octaves, t.gain, w * std::max(sx, sy), t.seed + salt);
  }

  Vec3 gradient() const {
    float v = 0.5f + 0.3f * std::sin(x * 1.7f + t.a * 6) + 0.2f * std::sin(y * 2.3f + x + t.b * 6);
    return ramp(v);
  }
  Vec3 clouds() const { return ramp(0.5f + 0.5f * fractal(1, 1, t.octaves, 0)); }
  Vec3 ridged() const {
    float v = fractal2(x, y, t.octaves, t.gain, w, t.seed, true);
    return ramp(0.5f + 0.5f * v);
  }
  Vec3 marble() const {
    float bend = fractal(0.7f, 0.7f, t.octaves, 5) * (1 + 3 * t.a);
    float v = 0.5f + 0.5f * std::sin(6.28f * (x + bend)) * kept(2 * w);
    return ramp(v);
  }
  Vec3 cells() const {
    Cell c = cell2(x, y, t.seed);
    float k = kept(w);
    Vec3 color = mix(mean(), mix(any(c.id >> 4), any(c.id >> 9), unit_of(c.id * 7u)), k);
    float gap = 0.02f + 0.16f * t.a;
    float border = inside(c.second - c.nearest - gap, 2 * w) * k;
    float round = 1 - 0.35f * t.b * c.nearest * k;
    return mix(color * round, t.colors[3] * 0.4f, border);
  }
  Vec3 speckle() const {
    Vec3 color = mix(t.colors[0], t.colors[1], 0.5f + 0.5f * fractal(0.12f, 0.12f, 3, 3));
    float scale = 1;
    for (std::uint32_t layer = 0; layer < 3; ++layer, scale *= 2.3f) {
      float k = kept(w * scale * 1.5f);
      if (k <= 0) break;
      Cell c = cell2(x * scale, y * scale, t.seed + layer * 31u);
      float size = 0.15f + 0.45f * unit_of(c.id * 13u);
      float on = inside(c.nearest - size * (0.4f + t.a), 1.5f * w * scale + 0.05f) * k;
      color = mix(color, any(c.id >> 5), on * (0.35f + 0.65f * t.b));
    }
    return color;
  }
  // Bricks, tiles and boards: cells of size (aspect, 1) whose rows are shifted.
  Vec3 masonry(float aspect, float gap, bool shift, bool boards) const {
    float row = std::floor(y);
    float px = x / aspect;
    if (shift) px += boards ? unit_of(hash(floor_int(row), 3, t.seed)) : 0.5f * std::fmod(row, 2.f);
    std::uint32_t h = hash(floor_int(px), floor_int(row), t.seed);
    float k = kept(w);
    Vec3 color = mix(t.colors[0], t.colors[1], k > 0 ? mix(0.5f, unit_of(h), k) : 0.5f);
    if (unit_of(h * 3u) < 0.15f) color = mix(color, t.colors[2], 0.7f * k);
    if (boards) {
      float grain = fractal2(x * 0.25f + unit_of(h) * 50, y * 5, 3, 0.6f, w * 5, t.seed + 9);
      color = color * (1 + 0.28f * t.b * grain);
    } else {
      color = color * (1 + 0.25f * t.b * fractal(2.3f, 2.3f, 3, 9));
    }
    float joint = pulse(px, 1 - gap / aspect, w / aspect) * pulse(y, 1 - gap, w);
    return mix(t.colors[3], color, joint);
  }
  Vec3 wood() const {
    float bend = fractal(0.3f, 0.6f, 2, 4);
    float ring = std::sin(6.28f * (y * 1.5f + 1.6f * bend)) * kept(2 * w);
    float grain = fractal2(x * 0.5f, y * 14, 3, 0.6f, w * 14, t.seed + 11);
    return ramp(0.5f + 0.3f * ring * t.a + 0.35f * grain * t.b);
  }
  Vec3 checks() const {
    float p = pulse(x, 0.5f, w), q = pulse(y, 0.5f, w);
    return mix(t.colors[0], t.colors[1], p + q - 2 * p * q);
  }
  Vec3 tartan() const {
    float p = pulse(x, 0.5f, w), q = pulse(y, 0.5f, w);
    Vec3 color = mix(t.colors[0], t.colors[1], 0.5f * (p + q));
    float thin = std::max(pulse(x + 0.3f, 0.06f, w), pulse(y + 0.3f, 0.06f, w));
    return mix(color, t.colors[2], 0.8f * thin);
  }
  Vec3 stripes() const { return mix(t.colors[0], t.colors[1], pulse(y, 0.1f + 0.8f * t.a, w)); }
  Vec3 bars() const {
    // Random widths: every cell is cut once; averaged over the pixel where that is wide.
    Vec3 sum;
    int taps = w > 0.15f ? 4 : 1;
    for (int i = 0; i < taps; ++i) {
      float at = y + w * ((static_cast<float>(i) + 0.5f) / static_cast<float>(taps) - 0.5f);
      int cell = floor_int(at);
      std::uint32_t h = hash(cell, 7, t.seed);
      float cut = 0.2f + 0.6f * unit_of(h);
      sum += any(at - static_cast<float>(cell) < cut ? h >> 3 : h >> 11);
    }
    return sum * (1.f / static_cast<float>(taps));
  }
  Vec3 zigzag() const {
    float fold = std::abs(x - std::floor(x) - 0.5f) * (0.5f + 2 * t.b);
    return mix(t.colors[0], t.colors[1], pulse(y + fold, 0.5f, w * (1.2f + t.b)));
  }
  Vec3 dots() const {
    float row = std::floor(y);
    float px = x + (t.b > 0.5f ? 0.5f * std::fmod(row, 2.f) : 0.f);
    Vec2 p{px - std::floor(px) - 0.5f, y - row - 0.5f};
    float radius = 0.12f + 0.33f * t.a;
    float on = inside(std::sqrt(p.x * p.x + p.y * p.y) - radius, w);
    on = mix(kPi * radius * radius, on, kept(w));
    std::uint32_t h = hash(floor_int(px), floor_int(row), t.seed);
    return mix(t.colors[0], t.gain > 0.5f ? t.colors[1] : mix(mean(), any(h), kept(w)), on);
  }
  Vec3 print() const {
    // A flower-like figure per cell, always the same one.
    float row = std::floor(y);
    float px = x + 0.5f * std::fmod(row, 2.f);
    Vec2 p{px - std::floor(px) - 0.5f, y - row - 0.5f};
    float r = std::sqrt(p.x * p.x + p.y * p.y), phi = std::atan2(p.y, p.x);
    float petals = 3 + std::floor(t.a * 5);
    float edge = 0.2f + 0.12f * std::cos(petals * phi + t.b * 6);
    float k = kept(1.5f * w);
    Vec3 color = mix(t.colors[0], t.colors[1], mix(0.15f, inside(r - edge, w), k));
    color = mix(color, t.colors[2], inside(r - 0.09f, w) * k);
    float stem = segment_distance(p, {0.1f, 0.1f}, {0.45f, 0.45f * (t.b - 0.5f)});
    return mix(color, t.colors[3], inside(stem - 0.04f, w) * k);
  }
  Vec3 weave() const {
    float k = kept(1.5f * w);
    float u = std::sin(kPi * x), v = std::sin(kPi * y);
    bool over = ((floor_int(x) + floor_int(y)) & 1) != 0;
    float height = over ? std::abs(u) : std::abs(v);
    Vec3 base = mix(over ? t.colors[0] : t.colors[1], t.colors[2],
                    0.5f + 0.5f * fractal(0.05f, 0.05f, 3, 2));
    return base * mix(0.8f, 0.45f + 0.55f * height, k);
  }
  Vec3 map() const {
    float v = 0.5f + 0.5f * fractal(1, 1, t.octaves, 0);
    float levels = 3 + std::floor(t.a * 5);
    float step = v * levels;
    auto h = hash(floor_int(step), 1, t.seed);
    Vec3 color = mix(mean(), mix(any(h), any(h >> 7), unit_of(h)), kept(w));
    float to_line = std::abs(step - std::floor(step + 0.5f));
    float line = inside(to_line - 0.04f, 2.5f * levels * w) * kept(w * 2);
    return mix(color, t.colors[3] * 0.3f, line * (t.b > 0.4f ? 1.f : 0.f));
  }
  Vec3 glyphs() const {
    constexpr float kAdvance = 0.62f;
    float row = std::floor(y), line = (y - row) / 0.68f;
    float px = x / kAdvance;
    int column = floor_int(px);
    std::uint32_t word = hash(floor_int(px / 5.3f), floor_int(row), t.seed + 5);
    std::uint32_t h = hash(column, floor_int(row), t.seed);
    bool blank = line > 1 || (hash(floor_int(row), 77, t.seed) & 7) == 0 || (h % 6u) == 0 ||
                 (word % 9u) == 0;
    Vec3 ink = (word % 11u) == 0 ? t.colors[2] : t.colors[1];
    float k = kept(4.5f * w);
    float mean_cover = blank ? 0.f : 0.3f;
    float cover = mean_cover;
    if (k > 0 && !blank) {
      Vec2 p{(px - static_cast<float>(column)) * 1.25f - 0.12f, line * 1.2f - 0.1f};
      float best = 9;
      for (std::uint32_t i = 0; i < 4; ++i) {
        std::uint32_t s = hash(h, i + 1);
        Vec2 from{static_cast<float>(s % 3u) * 0.5f, static_cast<float>((s >> 4) % 3u) * 0.5f};
        Vec2 to{static_cast<float>((s >> 8) % 3u) * 0.5f,
                static_cast<float>((s >> 12) % 3u) * 0.5f};
        if ((s >> 16) & 1)
          to.x = from.x;
        else
          to.y = from.y;
        best = std::min(best, segment_distance(p, from, to));
      }
      cover = mix(mean_cover, inside(best - (0.06f + 0.12f * t.a), 2.2f * w), k);
    }
    return mix(t.colors[0], ink, cover);
  }
  Vec3 poster() const {
    int cx = floor_int(x), cy = floor_int(y);
    Vec2 p{x - static_cast<float>(cx), y - static_cast<float>(cy)};
    std::uint32_t page = hash(cx, cy, t.seed);
    Vec3 color = any(page);
    int shapes = 3 + static_cast<int>(t.a * 7);
    for (int i = 0; i < shapes; ++i) {
      std::uint32_t h = hash(page, static_cast<std::uint32_t>(i) + 1);
      std::uint32_t g = hash(h, 99);
      Vec2 c{unit_of(h), unit_of(h * 5u)};
      float size = 0.05f + 0.3f * unit_of(g);
      Vec2 d = p - c;
      float distance;
      if (g % 3u == 0) {
        distance = std::sqrt(d.x * d.x + d.y * d.y) - size;
      } else if (g % 3u == 1) {
        distance = std::max(std::abs(d.x) - size, std::abs(d.y) - size * unit_of(g * 3u));
      } else {
        float turn = 6.28f * unit_of(g * 9u), cs = std::cos(turn), sn = std::sin(turn);
        distance = std::abs(d.x * cs + d.y * sn) - 0.03f - 0.1f * size;
      }
      color = mix(color, mix(any(h >> 6), any(h >> 12), unit_of(g * 21u)), inside(distance, w));
    }
    return mix(color, mean(), 1 - kept(w * 0.5f));
  }
  Vec3 windows() const {
    float fx = x - std::floor(x), fy = y - std::floor(y);
    std::uint32_t h = hash(floor_int(x), floor_int(y), t.seed);
    float wide = 0.3f + 0.35f * t.a, tall = 0.4f + 0.3f * t.b;
    float dx = std::abs(fx - 0.5f) - 0.5f * wide, dy = std::abs(fy - 0.5f) - 0.5f * tall;
    float k = kept(w), edge = 0.035f;
    float pane = mix(wide * tall, inside(std::max(dx, dy), w), k);
    float frame = mix((wide + 2 * edge) * (tall + 2 * edge), inside(std::max(dx, dy) - edge, w), k);
    float bar =
        std::max(inside(std::abs(fx - 0.5f) - 0.015f, w), inside(std::abs(fy - 0.35f) - 0.012f, w));
    bar = mix(0.08f, bar, k);
    Vec3 wall = t.colors[0] * (1 + 0.15f * fractal(4, 4, 4, 1));
    Vec3 glass =
        mix(t.colors[2], Vec3{0.02f, 0.025f, 0.03f}, 0.4f + 0.6f * mix(0.5f, unit_of(h), k)) *
        (0.7f + 0.6f * mix(0.5f, fy, k));
    Vec3 color = mix(wall, t.colors[1], frame);
    return mix(color, mix(glass, t.colors[1], bar), pane);
  }
  Vec3 truchet() const {
    int cx = floor_int(x), cy = floor_int(y);
    Vec2 p{x - static_cast<float>(cx), y - static_cast<float>(cy)};
    if (hash(cx, cy, t.seed) & 1) p.x = 1 - p.x;
    float r1 = std::sqrt(p.x * p.x + p.y * p.y);
    float r2 = std::sqrt((1 - p.x) * (1 - p.x) + (1 - p.y) * (1 - p.y));
    float d = std::min(std::abs(r1 - 0.5f), std::abs(r2 - 0.5f));
    float on = mix(0.25f, inside(d - 0.05f - 0.12f * t.a, w), kept(w));
    return mix(t.colors[0], t.colors[1], on);
  }
  Vec3 leaves() const {
    Vec3 color = t.colors[0] * 0.45f;
    float scale = 1;
    for (std::uint32_t layer = 0; layer < 2; ++layer, scale *= 1.6f) {
      float k = kept(w * scale);
      if (k <= 0) {
        color = mix(color, mix(t.colors[1], mean(), 0.6f) * 0.95f, 0.33f);
        continue;
      }
      Cell c = cell2(x * scale, y * scale, t.seed + layer * 17u);
      float turn = 6.28f * unit_of(c.id * 3u) * t.b, cs = std::cos(turn), sn = std::sin(turn);
      float along = c.offset.x * sn + c.offset.y * cs, across = c.offset.x * cs - c.offset.y * sn;
      float d = std::sqrt(along * along * 0.5f + across * across * 5) - 0.42f;
      float on = mix(0.33f, inside(d, 2 * w * scale), k);
      float light = 0.65f + 0.7f * unit_of(c.id * 11u) - 0.4f * std::abs(across);
      color = mix(color, mix(t.colors[1], any(c.id >> 6), 0.6f) * mix(0.95f, light, k), on);
    }
    return color * (1 + 0.35f * fractal(0.15f, 0.15f, 2, 8));
  }
  Vec3 random_cells() const {
    std::uint32_t h = hash(floor_int(x), floor_int(y), t.seed);
    float v = mix(0.5f, unit_of(h), kept(w));
    float fine = fractal2(x * 0.3f, y * 0.3f, 2, 0.5f, 0.3f * w, t.seed + 1);
    return ramp(0.8f * v + 0.1f + 0.25f * fine);
  }
  Vec3 picture() const {
    // Photographs stand upright: v grows downwards in them.
    Vec3 c = t.photo->color(x * (t.a < 0.5f ? 1.f : -1.f), -y, w);
    return mix(t.colors[0], c, t.contrast);
  }

  Vec3 pattern() const {
    switch (t.pattern) {
      case Pattern::kPlain:
        return t.colors[0];
      case Pattern::kGradient:
        return gradient();
      case Pattern::kFractal:
        return clouds();
      case Pattern::kRidged:
        return ridged();
      case Pattern::kMarble:
        return marble();
      case Pattern::kCells:
        return cells();
      case Pattern::kSpeckle:
        return speckle();
      case Pattern::kBricks:
        return masonry(2.2f + t.a, 0.12f, true, false);
      case Pattern::kTiles:
        return masonry(1, 0.03f + 0.04f * t.a, t.b > 0.8f, false);
      case Pattern::kPlanks:
        return masonry(6 + 8 * t.a, 0.04f, true, true);
      case Pattern::kWood:
        return wood();
      case Pattern::kChecks:
        return checks();
      case Pattern::kTartan:
        return tartan();
      case Pattern::kStripes:
        return stripes();
      case Pattern::kBars:
        return bars();
      case Pattern::kZigzag:
        return zigzag();
      case Pattern::kDots:
        return dots();
      case Pattern::kPrint:
        return print();
      case Pattern::kWeave:
        return weave();
      case Pattern::kMap:
        return map();
      case Pattern::kGlyphs:
        return glyphs();
      case Pattern::kPoster:
        return poster();
      case Pattern::kWindows:
        return windows();
      case Pattern::kTruchet:
        return truchet();
      case Pattern::kLeaves:
        return leaves();
      case Pattern::kStatic:
        return random_cells();
      case Pattern::kPhoto:
        return picture();
    }
    return t.colors[0];
  }
};

// Noise at the scales of 1 to 32 pixels, all of them equally strong as in photographs. The scales
// belong to the surface; which of them count follows the pixel's size without steps.
float detail_noise(Vec2 uv, float width, std::uint32_t seed) {
  float pixels = -std::log2(std::max(width, 1e-6f));  // a cell of frequency 2^pixels is a pixel
  float sum = 0;
  for (int i = floor_int(pixels - 5) + 1; static_cast<float>(i) < pixels; ++i) {
    float frequency = std::exp2(static_cast<float>(i));
    float weight = std::min(static_cast<float>(i) - (pixels - 5), 1.f) *
                   (1 - smooth_step(0.35f, 0.9f, width * frequency));
    if (weight > 0)
      sum += weight * noise2(uv.x * frequency, uv.y * frequency,
                             seed + static_cast<std::uint32_t>(i) * 101u);
  }
  return sum;
}

}  // namespace

Vec3 Texture::color(Vec2 uv, float width) const {
  Vec2 r{uv.x * cosine + uv.y * sine, uv.y * cosine - uv.x * sine};
  Evaluator e{*this, r.x * frequency / stretch + offset.x, r.y * frequency + offset.y,
              width * frequency};
  Vec3 c = e.pattern() * tint;
  float light = 1;
  if (grain > 0)
    light += grain * fractal2(uv.x * grain_frequency, uv.y * grain_frequency, 3, 0.7f,
                              width * grain_frequency, seed + 71);
  if (dirt > 0) {
    float d = fractal2(uv.x * dirt_frequency, uv.y * dirt_frequency, 4, 0.55f,
                       width * dirt_frequency, seed + 73);
    light *= 1 - dirt * clamp01(0.4f + d);
  }
  if (detail > 0) light *= std::exp(detail * detail_noise(uv, width, seed + 79));
  c = c * std::max(light, 0.05f);
  return {std::clamp(c.x, 0.f, 2.f), std::clamp(c.y, 0.f, 2.f), std::clamp(c.z, 0.f, 2.f)};
}

}  // namespace nmrf::synth
