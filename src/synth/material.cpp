#include "synth/material.h"

#include <iterator>

#include "synth/noise.h"

namespace nmrf::synth {
namespace {

// sRGB colours of things: plaster, stone, wood, brick, cloth, paint, leaves.
constexpr std::uint32_t kWorldColors[] = {
    0xf2efe6, 0xe8e4d8, 0xd9d4c7, 0xc0c0bd, 0x9a9a98, 0x6f7072, 0x4a4b4d, 0x2b2c2e, 0x151617,
    0x8a5a33, 0x6b4423, 0xa97c50, 0xc9a26b, 0x4a2f1b, 0xd8b98a, 0xa4442e, 0x8b3a2b, 0xb5654a,
    0xd7c7a3, 0xc2b280, 0xe0cfb0, 0x1f3a5f, 0x2f5d8a, 0x5b8db8, 0x9cc0d9, 0x273043, 0x2f4f2f,
    0x4f6f3a, 0x7a8f4a, 0x9caf88, 0x3b5d50, 0x5a7d4e, 0xd9b23c, 0xe3c565, 0xc99a2e, 0xcf6b2b,
    0xd98b4a, 0x9b1c1f, 0xc23b3b, 0xd9706b, 0x5b4a72, 0x8c7aa0, 0xd9a3a3, 0x2a7f7f, 0x5fa8a0,
    0xb8a99a, 0x7d6b5d, 0x94a3a8, 0x3d4f5c, 0xf5f5f5, 0x8f9779, 0x6d3b47};

Vec3 linear(std::uint32_t srgb) {
  auto channel = [&](int shift) {
    return std::pow(static_cast<float>((srgb >> shift) & 255u) / 255.f, 2.2f);
  };
  return {channel(16), channel(8), channel(0)};
}

Vec3 jitter(Dice& dice, Vec3 c, float amount) {
  float light = std::exp(dice.normal(amount));
  return {clamp01(c.x * light * std::exp(dice.normal(0.4 * amount))),
          clamp01(c.y * light * std::exp(dice.normal(0.25 * amount))),
          clamp01(c.z * light * std::exp(dice.normal(0.4 * amount)))};
}

Vec3 hsv(float h, float s, float v) {
  auto channel = [&](float n) {
    float k = std::fmod(n + h * 6, 6.f);
    return v - v * s * std::max(0.f, std::min({k, 4 - k, 1.f}));
  };
  return {channel(5), channel(3), channel(1)};
}

}  // namespace

Surface surface_of(const Material& m) {
  if (m.glass > 0) return Surface::kGlass;
  if (m.mirror >= 0.1f) return Surface::kReflecting;
  if (m.specular >= 0.3f) return Surface::kGlossy;
  if (m.backlight > 0) return Surface::kLeaves;
  const Texture& t = m.texture;
  const bool one_color = t.pattern == Pattern::kPlain || t.pattern == Pattern::kGradient;
  return one_color && t.grain + t.detail < 0.05f ? Surface::kPlain : Surface::kMatte;
}

MaterialMaker::MaterialMaker(const SynthOptions& options) : options_(options) {
  if (!options.textures.empty()) photos_ = PhotoLibrary::open(options.textures);
}

Vec3 MaterialMaker::color(Dice& dice) const {
  if (dice.chance(0.25)) return hsv(dice.real(0, 1), dice.real(0.1, 1), dice.real(0.08, 0.9));
  return jitter(dice, linear(kWorldColors[dice.count(0, std::size(kWorldColors) - 1)]), 0.25f);
}

void MaterialMaker::palette(Dice& dice, Texture& texture) const {
  auto& c = texture.colors;
  int scheme = dice.weighted(std::initializer_list<double>{0.5, 0.3, 0.2});
  c[0] = color(dice);
  if (scheme == 0) {  // light and dark of one colour
    float spread = dice.log_real(1.3, 5);
    for (std::size_t i = 1; i < 4; ++i)
      c[i] = jitter(dice, c[0] * std::pow(spread, dice.real(-1, 1)), 0.08f);
  } else if (scheme == 1) {
    c[3] = color(dice);
    c[1] = mix(c[0], c[3], dice.real(0.2, 0.5)), c[2] = mix(c[0], c[3], dice.real(0.5, 0.8));
  } else {
    for (std::size_t i = 1; i < 4; ++i) c[i] = color(dice);
  }
  for (std::size_t i = 3; i > 0; --i)
    std::swap(c[i], c[static_cast<std::size_t>(dice.count(0, static_cast<int>(i)))]);
  if (dice.chance(options_.low_contrast)) {
    Vec3 mean = (c[0] + c[1] + c[2] + c[3]) * 0.25f;
    float left = dice.log_real(0.04, 0.4);
    for (auto& color : c) color = mix(mean, color, left);
  }
}

Texture MaterialMaker::pattern(Dice& dice, Pattern pattern, float cell) const {
  Texture t;
  t.pattern = pattern;
  t.frequency = 1 / std::max(cell, 1e-4f);
  t.seed = dice.bits();
  t.offset = {dice.real(0, 64), dice.real(0, 64)};
  t.a = dice.real(0, 1), t.b = dice.real(0, 1);
  t.octaves = dice.count(2, 7);
  t.gain = dice.real(0.35, 0.75);
  palette(dice, t);
  if (dice.chance(0.45)) {
    t.grain = dice.log_real(0.02, 0.3);
    t.grain_frequency = t.frequency * dice.log_real(2, 30);
  }
  if (dice.chance(0.3)) {
    t.dirt = dice.real(0.1, 0.6);
    t.dirt_frequency = t.frequency * dice.log_real(0.1, 1.5);
  }
  // Drawn from the seed, not from the dice: with or without it the scene is the same.
  if (unit_of(hash(t.seed, 83)) < options_.detail)
    t.detail = 0.05f * std::pow(16.f, unit_of(hash(t.seed, 89)));
  return t;
}

Texture MaterialMaker::photo(Dice& dice, float height) const {
  Texture t = pattern(dice, Pattern::kPhoto, height);
  t.photo = &photos_->photo(dice.bits());
  t.stretch = 1;
  t.grain = dice.chance(0.1) ? dice.real(0.02, 0.15) : 0;
  t.contrast = dice.chance(0.5 * options_.low_contrast) ? dice.real(0.1, 0.6) : 1;
  if (dice.chance(0.3)) t.tint = mix(Vec3{1, 1, 1}, color(dice) * 1.6f, dice.real(0.2, 0.9));
  if (dice.chance(0.25)) t.dirt = 0;
  return t;
}

void MaterialMaker::calm(Dice& dice, Texture& t) const {
  float keep = dice.real(0.1, 0.6);
  for (auto& c : t.colors) {
    float grey = luminance(c);
    c = mix(Vec3{grey, grey, grey}, c, keep);
  }
}

void MaterialMaker::finish(Dice& dice, Material& m) const {
  if (dice.chance(options_.shiny)) {
    m.specular = dice.log_real(0.05, 1.2);
    m.shininess = dice.log_real(6, 250);
  }
  if (dice.chance(options_.mirror))
    m.mirror = dice.real(0.15, 0.8);
  else if (dice.chance(options_.glass))
    m.glass = dice.real(0.15, 0.6);
  if (dice.chance(0.25)) {
    m.bump = dice.log_real(0.05, 0.7);
    m.bump_frequency = m.texture.frequency * dice.log_real(0.5, 12);
  }
}

Material MaterialMaker::any(Dice& dice, float size) const {
  Material m;
  if (dice.chance(options_.plain)) {
    m.texture = pattern(dice, dice.chance(0.7) ? Pattern::kPlain : Pattern::kGradient,
                        size * dice.real(0.5, 3));
    if (dice.chance(0.6)) m.texture.grain = m.texture.detail = 0;
    m.texture.grain *= 0.3f, m.texture.dirt *= 0.5f, m.texture.detail *= 0.3f;
  } else if (photos_ && dice.chance(options_.photo)) {
    m.texture = photo(dice, size * dice.log_real(0.25, 2.5));
    m.texture.rotate(dice.chance(0.5) ? 0 : dice.real(0, 2 * kPi));
  } else {
    constexpr Pattern kPatterns[] = {
        Pattern::kFractal, Pattern::kRidged,  Pattern::kMarble, Pattern::kCells,  Pattern::kSpeckle,
        Pattern::kBricks,  Pattern::kTiles,   Pattern::kPlanks, Pattern::kWood,   Pattern::kChecks,
        Pattern::kTartan,  Pattern::kStripes, Pattern::kBars,   Pattern::kZigzag, Pattern::kDots,
        Pattern::kPrint,   Pattern::kWeave,   Pattern::kMap,    Pattern::kGlyphs, Pattern::kPoster,
        Pattern::kWindows, Pattern::kTruchet, Pattern::kLeaves, Pattern::kStatic};
    constexpr double kWeights[] = {5, 2,   2,   2, 3, 1, 1, 1, 2.5, 0.8, 0.8, 0.8,
                                   1, 0.6, 0.8, 1, 1, 2, 2, 2, 0.7, 0.5, 1.5, 1};
    static_assert(std::size(kPatterns) == std::size(kWeights));
    Pattern p = kPatterns[dice.weighted(kWeights)];
    // Clouds may be large; regular patterns look right with several cells on the object.
    bool cloudy = p == Pattern::kFractal || p == Pattern::kRidged || p == Pattern::kMarble ||
                  p == Pattern::kMap || p == Pattern::kPoster;
    m.texture =
        pattern(dice, p, size * (cloudy ? dice.log_real(0.08, 0.9) : dice.log_real(0.02, 0.3)));
    m.texture.rotate(dice.chance(0.5) ? 0.5f * kPi * static_cast<float>(dice.count(0, 3))
                                      : dice.real(0, 2 * kPi));
    if (dice.chance(0.2)) m.texture.stretch = dice.log_real(0.4, 4);
  }
  finish(dice, m);
  return m;
}

Material MaterialMaker::picture(Dice& dice, float height) const {
  if (!photos_ || !dice.chance(std::min(1.0, 2 * options_.photo))) return any(dice, height);
  Material m;
  m.texture = photo(dice, height);
  return m;
}

Material MaterialMaker::wall(Dice& dice) const {
  Material m;
  int kind = dice.weighted(std::initializer_list<double>{4, 3, 2, 1.2, 1, 0.8, 0.8, 0.6});
  switch (kind) {
    case 0:
      m.texture = pattern(dice, Pattern::kPlain, 1);
      break;
    case 1:
      m.texture = pattern(dice, Pattern::kFractal, dice.log_real(0.02, 1.5));
      break;
    case 2:
      m.texture = pattern(dice,
                          dice.pick({Pattern::kPrint, Pattern::kStripes, Pattern::kDots,
                                     Pattern::kZigzag, Pattern::kTruchet}),
                          dice.log_real(0.04, 0.4));
      break;
    case 3:
      m.texture = pattern(dice, Pattern::kBricks, dice.real(0.06, 0.1));
      break;
    case 4:
      m.texture = pattern(dice, Pattern::kPlanks, dice.real(0.08, 0.2));
      break;
    case 5:
      m.texture = pattern(dice, Pattern::kTiles, dice.log_real(0.08, 0.5));
      break;
    case 6:
      m.texture = pattern(dice, Pattern::kGradient, 3);
      break;
    default:
      return any(dice, 2);
  }
  // Painted walls are light and even far more often than not.
  if (kind <= 2 && dice.chance(0.65)) {
    Vec3 light = jitter(dice, linear(kWorldColors[dice.pick({0, 1, 2, 18, 20, 24, 29})]), 0.15f);
    float keep = kind == 2 ? dice.real(0.2, 0.7) : dice.log_real(0.02, 0.25);
    for (auto& c : m.texture.colors) c = mix(light, c, keep);
  }
  if (dice.chance(0.6)) calm(dice, m.texture);
  if (kind == 3 && dice.chance(0.7))
    m.texture.colors[0] = jitter(dice, linear(0xa4442e), 0.2f),
    m.texture.colors[1] = jitter(dice, linear(0x8b5a4a), 0.2f),
    m.texture.colors[3] = jitter(dice, linear(0xb8b0a4), 0.15f);
  if (dice.chance(0.6))
    m.texture.grain = dice.log_real(0.01, 0.08), m.texture.grain_frequency = dice.log_real(20, 300);
  if (dice.chance(0.25))
    m.bump = dice.log_real(0.03, 0.3), m.bump_frequency = dice.log_real(5, 150);
  if (dice.chance(0.15)) m.specular = dice.real(0.03, 0.25), m.shininess = dice.log_real(8, 60);
  return m;
}

Material MaterialMaker::floor(Dice& dice) const {
  Material m;
  switch (dice.weighted(std::initializer_list<double>{3, 2, 2, 1.5, 1, 0.7})) {
    case 0:
      m.texture = pattern(dice, Pattern::kPlanks, dice.real(0.07, 0.2));
      break;
    case 1:
      m.texture = pattern(dice, Pattern::kTiles, dice.log_real(0.1, 0.6));
      break;
    case 2:
      m.texture = pattern(dice, Pattern::kSpeckle, dice.log_real(0.01, 0.05));
      break;
    case 3:
      m.texture = pattern(dice, Pattern::kFractal, dice.log_real(0.05, 2));
      break;
    case 4:
      m.texture = pattern(
          dice, dice.pick({Pattern::kChecks, Pattern::kWeave, Pattern::kPrint, Pattern::kTartan}),
          dice.log_real(0.03, 0.4));
      break;
    default:
      return any(dice, 2);
  }
  if (m.texture.pattern == Pattern::kPlanks && dice.chance(0.7)) {
    Vec3 base = jitter(dice, linear(kWorldColors[dice.pick({9, 10, 11, 12, 13, 14})]), 0.2f);
    for (auto& c : m.texture.colors) c = jitter(dice, base, 0.18f);
    m.texture.colors[3] = base * 0.3f;
  }
  if (dice.chance(0.75)) calm(dice, m.texture);
  m.texture.rotate(dice.chance(0.8) ? (dice.chance(0.5) ? 0 : 0.5f * kPi) : dice.real(0, kPi));
  if (dice.chance(options_.shiny)) {
    m.specular = dice.real(0.1, 0.8), m.shininess = dice.log_real(15, 150);
    if (dice.chance(3 * options_.mirror)) m.mirror = dice.real(0.05, 0.3);
  }
  return m;
}

Material MaterialMaker::facade(Dice& dice) const {
  Material m;
  switch (dice.weighted(std::initializer_list<double>{3, 2, 1, 1})) {
    case 0:
      m.texture = pattern(dice, Pattern::kFractal, dice.log_real(0.1, 3));
      break;
    case 1:
      m.texture = pattern(dice, Pattern::kBricks, dice.real(0.07, 0.35));
      break;
    case 2:
      m.texture = pattern(dice, Pattern::kPlanks, dice.real(0.12, 0.35));
      break;
    default:
      m.texture = pattern(dice, Pattern::kTiles, dice.real(0.3, 1.2));
      break;
  }
  Vec3 base = jitter(
      dice, linear(kWorldColors[dice.pick({0, 1, 2, 3, 4, 14, 15, 17, 18, 19, 20, 45})]), 0.2f);
  float keep = dice.real(0.05, 0.35);
  for (auto& c : m.texture.colors) c = mix(base, c, keep);
  if (m.texture.pattern == Pattern::kBricks)
    m.texture.colors[3] = mix(base, {0.5f, 0.48f, 0.45f}, 0.7f);
  m.texture.grain = dice.log_real(0.02, 0.2), m.texture.grain_frequency = dice.log_real(5, 60);
  m.texture.dirt = dice.real(0, 0.4), m.texture.dirt_frequency = dice.log_real(0.1, 1);
  return m;
}

Material MaterialMaker::road(Dice& dice) const {
  Material m;
  m.texture = pattern(dice, dice.chance(0.75) ? Pattern::kSpeckle : Pattern::kFractal,
                      dice.log_real(0.015, 0.06));
  Vec3 base = jitter(dice, Vec3{0.1f, 0.1f, 0.105f}, 0.45f);
  float spread = dice.real(0.1, 0.6);
  for (auto& c : m.texture.colors) c = base * std::exp(dice.normal(spread));
  m.texture.grain = dice.real(0.03, 0.25), m.texture.grain_frequency = dice.log_real(1, 25);
  m.texture.dirt = dice.real(0, 0.5), m.texture.dirt_frequency = dice.log_real(0.15, 1.5);
  if (dice.chance(0.3 * options_.shiny))
    m.specular = dice.real(0.1, 0.6), m.shininess = dice.log_real(8, 40);
  return m;
}

Material MaterialMaker::pavement(Dice& dice) const {
  Material m;
  m.texture = pattern(
      dice, dice.pick({Pattern::kTiles, Pattern::kBricks, Pattern::kCells, Pattern::kSpeckle}),
      dice.log_real(0.1, 0.6));
  if (m.texture.pattern == Pattern::kSpeckle) m.texture.frequency = 30;
  Vec3 base = jitter(dice, linear(kWorldColors[dice.pick({2, 3, 4, 5, 18, 45, 46})]), 0.25f);
  float keep = dice.real(0.05, 0.3);
  for (auto& c : m.texture.colors) c = mix(base, c, keep);
  m.texture.colors[3] = base * dice.real(0.3, 1.2);
  m.texture.grain = dice.real(0.02, 0.2), m.texture.grain_frequency = dice.log_real(5, 50);
  m.texture.dirt = dice.real(0, 0.5), m.texture.dirt_frequency = dice.log_real(0.2, 2);
  return m;
}

Material MaterialMaker::soil(Dice& dice) const {
  Material m;
  int kind = dice.weighted(std::initializer_list<double>{4, 2, 2, 2});
  if (kind == 0) {
    m.texture = pattern(dice, Pattern::kLeaves, dice.log_real(0.02, 0.1));
    Vec3 green = jitter(dice, Vec3{0.09f, 0.16f, 0.035f}, 0.4f);
    for (auto& c : m.texture.colors) c = jitter(dice, green, 0.25f);
  } else if (kind == 1) {
    m.texture = pattern(dice, Pattern::kSpeckle, dice.log_real(0.02, 0.12));
    Vec3 stone = jitter(dice, Vec3{0.3f, 0.27f, 0.23f}, 0.35f);
    for (auto& c : m.texture.colors) c = stone * std::exp(dice.normal(0.5));
  } else if (kind == 2) {
    m.texture = pattern(dice, Pattern::kFractal, dice.log_real(0.05, 0.8));
    m.texture.octaves = 7, m.texture.gain = 0.7f;
    Vec3 earth = jitter(dice, Vec3{0.2f, 0.14f, 0.08f}, 0.4f);
    for (auto& c : m.texture.colors) c = earth * std::exp(dice.normal(0.45));
  } else {
    m.texture = pattern(dice, Pattern::kLeaves, dice.log_real(0.03, 0.12));
    m.texture.b = 1;
    for (auto& c : m.texture.colors)
      c = jitter(dice, dice.chance(0.5) ? Vec3{0.3f, 0.14f, 0.04f} : Vec3{0.12f, 0.14f, 0.05f},
                 0.35f);
  }
  m.texture.dirt = dice.real(0, 0.6), m.texture.dirt_frequency = dice.log_real(0.2, 2);
  m.bump = dice.real(0, 0.4), m.bump_frequency = dice.log_real(3, 20);
  return m;
}

Material MaterialMaker::wood(Dice& dice) const {
  Material m;
  m.texture = pattern(dice, dice.chance(0.7) ? Pattern::kWood : Pattern::kPlanks,
                      dice.log_real(0.04, 0.25));
  Vec3 base = jitter(dice, linear(kWorldColors[dice.pick({9, 10, 11, 12, 13, 14, 46})]), 0.3f);
  for (auto& c : m.texture.colors) c = jitter(dice, base * dice.log_real(0.6, 1.6), 0.08f);
  if (dice.chance(0.5)) m.texture.rotate(0.5f * kPi);
  if (dice.chance(options_.shiny))
    m.specular = dice.real(0.05, 0.5), m.shininess = dice.log_real(10, 80);
  return m;
}

Material MaterialMaker::metal(Dice& dice) const {
  Material m;
  m.texture = pattern(dice, dice.chance(0.6) ? Pattern::kPlain : Pattern::kFractal,
                      dice.log_real(0.02, 0.5));
  Vec3 base = jitter(dice, linear(kWorldColors[dice.pick({3, 4, 5, 6, 7, 8, 26, 47, 48})]), 0.25f);
  for (auto& c : m.texture.colors) c = mix(base, c, 0.12f);
  m.texture.detail *= 0.3f;
  if (options_.shiny > 0) m.specular = dice.real(0.2, 1.2), m.shininess = dice.log_real(15, 150);
  if (dice.chance(4 * options_.mirror)) m.mirror = dice.real(0.1, 0.5);
  return m;
}

Material MaterialMaker::paint(Dice& dice) const {
  Material m;
  m.texture =
      pattern(dice, dice.chance(0.7) ? Pattern::kPlain : Pattern::kGradient, dice.real(0.5, 3));
  m.texture.grain *= 0.3f, m.texture.detail *= 0.3f;
  if (dice.chance(options_.shiny))
    m.specular = dice.real(0.1, 0.9), m.shininess = dice.log_real(10, 120);
  return m;
}

Material MaterialMaker::car_paint(Dice& dice) const {
  Material m;
  m.texture = pattern(dice, Pattern::kPlain, 1);
  Vec3 base = jitter(dice,
                     linear(dice.pick({0xf0f0f0u, 0xb9bcc0u, 0x7c8084u, 0x17181bu, 0x1c2a48u,
                                       0x8f1a1cu, 0x303437u, 0x31493cu, 0xd8d2c4u, 0xc8a032u})),
                     0.25f);
  for (auto& c : m.texture.colors) c = base;
  m.texture.grain = m.texture.detail = 0, m.texture.dirt = dice.chance(0.3) ? 0.2f : 0;
  if (options_.shiny > 0) m.specular = dice.real(0.4, 1.5), m.shininess = dice.log_real(40, 250);
  if (options_.mirror > 0) m.mirror = dice.real(0.05, 0.3);
  return m;
}

Material MaterialMaker::window(Dice& dice) const {
  Material m;
  m.texture = pattern(dice, dice.chance(0.5) ? Pattern::kPlain : Pattern::kGradient, 2);
  Vec3 base = jitter(dice, Vec3{0.03f, 0.035f, 0.04f}, 0.7f);
  for (auto& c : m.texture.colors) c = jitter(dice, base, 0.2f);
  m.texture.grain = m.texture.dirt = m.texture.detail = 0;
  if (options_.shiny > 0) m.specular = dice.real(0.3, 1.2), m.shininess = dice.log_real(60, 300);
  if (options_.mirror > 0) m.mirror = dice.real(0.1, 0.6);
  return m;
}

Material MaterialMaker::rubber(Dice& dice) const {
  Material m;
  m.texture = pattern(dice, Pattern::kPlain, 1);
  for (auto& c : m.texture.colors) c = Vec3{1, 1, 1} * dice.log_real(0.01, 0.05);
  return m;
}

Material MaterialMaker::cloth(Dice& dice, float size) const {
  Material m;
  if (photos_ && dice.chance(0.5 * options_.photo)) {
    m.texture = photo(dice, size * dice.log_real(0.2, 1));
  } else {
    m.texture =
        pattern(dice,
                dice.pick({Pattern::kPrint, Pattern::kTartan, Pattern::kStripes, Pattern::kWeave,
                           Pattern::kWeave, Pattern::kDots, Pattern::kFractal, Pattern::kPlain,
                           Pattern::kZigzag, Pattern::kChecks}),
                size * dice.log_real(0.01, 0.15));
  }
  if (dice.chance(0.5)) m.texture.rotate(dice.real(0, 2 * kPi));
  m.bump = dice.chance(0.4) ? dice.real(0.05, 0.3) : 0,
  m.bump_frequency = dice.log_real(8, 100) / size;
  return m;
}

Material MaterialMaker::paper(Dice& dice, float size) const {
  Material m;
  if (photos_ && dice.chance(std::min(1.0, 1.5 * options_.photo))) {
    m.texture = photo(dice, size * dice.log_real(0.5, 1.2));
  } else {
    bool text = dice.chance(0.45);
    m.texture = pattern(dice,
                        text ? Pattern::kGlyphs
                             : dice.pick({Pattern::kPoster, Pattern::kPoster, Pattern::kMap,
                                          Pattern::kFractal, Pattern::kPlain}),
                        size * (text ? dice.log_real(0.02, 0.2) : dice.log_real(0.3, 1.2)));
    if (text && dice.chance(0.7)) {
      m.texture.colors[0] = jitter(dice, Vec3{0.75f, 0.74f, 0.7f}, 0.15f);
      m.texture.colors[1] = jitter(dice, Vec3{0.03f, 0.03f, 0.03f}, 0.3f);
    }
  }
  if (dice.chance(options_.shiny))
    m.specular = dice.real(0.05, 0.5), m.shininess = dice.log_real(10, 100);
  return m;
}

Material MaterialMaker::foliage(Dice& dice) const {
  Material m;
  m.texture = pattern(dice, Pattern::kFractal, dice.log_real(0.05, 0.6));
  Vec3 base =
      jitter(dice, dice.chance(0.8) ? Vec3{0.08f, 0.15f, 0.03f} : Vec3{0.3f, 0.16f, 0.04f}, 0.4f);
  float spread = dice.real(0.15, 0.6);
  for (auto& c : m.texture.colors) c = jitter(dice, base * std::exp(dice.normal(spread)), 0.1f);
  m.backlight = dice.real(0.1, 0.5);
  if (dice.chance(options_.shiny))
    m.specular = dice.real(0.05, 0.4), m.shininess = dice.log_real(8, 40);
  return m;
}

Material MaterialMaker::bark(Dice& dice) const {
  Material m;
  m.texture = pattern(dice, Pattern::kRidged, dice.log_real(0.03, 0.15));
  m.texture.stretch = 0.4f;
  Vec3 base = jitter(dice, Vec3{0.13f, 0.1f, 0.075f}, 0.45f);
  for (auto& c : m.texture.colors) c = base * std::exp(dice.normal(0.4));
  m.bump = 0.4f, m.bump_frequency = 20;
  return m;
}

Material MaterialMaker::rock(Dice& dice) const {
  Material m;
  m.texture = pattern(dice, dice.pick({Pattern::kFractal, Pattern::kSpeckle, Pattern::kRidged}),
                      dice.log_real(0.03, 0.5));
  Vec3 base = jitter(dice, Vec3{0.28f, 0.26f, 0.23f}, 0.45f);
  for (auto& c : m.texture.colors) c = jitter(dice, base * std::exp(dice.normal(0.35)), 0.06f);
  m.bump = dice.real(0.1, 0.6), m.bump_frequency = dice.log_real(3, 30);
  return m;
}

Material MaterialMaker::lamp(Dice& dice) const {
  Material m;
  m.texture = pattern(dice, Pattern::kPlain, 1);
  for (auto& c : m.texture.colors) c = jitter(dice, Vec3{1, 0.9f, 0.75f}, 0.08f);
  m.emission = dice.real(0.6, 3);
  m.texture.grain = m.texture.dirt = m.texture.detail = 0;
  return m;
}

}  // namespace nmrf::synth
