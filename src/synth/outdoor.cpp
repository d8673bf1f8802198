// Things found outdoors.
#include <algorithm>

#include "synth/builder.h"
#include "synth/noise.h"

namespace nmrf::synth {
namespace {

// Branches that fork; the tips are collected for leaves.
void grow(Dice& dice, Mesh& wood, Vec3 from, Vec3 toward, float length_, float radius, int depth,
          std::vector<Vec3>& tips) {
  Vec3 middle = from + toward * (0.5f * length_) + dice.unit() * (0.08f * length_);
  Vec3 end = from + normalize(toward + dice.unit() * 0.25f) * length_;
  wood.append(
      tube({from, middle, end}, radius, radius * 0.65f, depth > 2 ? 8 : (depth > 0 ? 5 : 3)), {});
  if (depth == 0) {
    tips.push_back(end);
    return;
  }
  int forks = dice.count(2, 3);
  for (int i = 0; i < forks; ++i) {
    Vec3 next = normalize(toward + dice.unit() * 0.85f + Vec3{0, 0.15f, 0});
    grow(dice, wood, end, next, length_ * dice.real(0.6, 0.85), radius * 0.6f, depth - 1, tips);
  }
}

}  // namespace

void Builder::tree(Dice& dice, const Transform& at, float height) {
  int bark = scene.add_material(make.bark(dice));
  float radius = height * dice.real(0.015, 0.035), stem = height * dice.real(0.2, 0.45);
  bool bare = dice.chance(0.2);
  if (!bare && dice.chance(0.2)) {  // conifer: tiers of drooping needles
    scene.add(
        tube({{}, {0, height * 0.5f, 0}, {0, height * 0.95f, 0}}, 0.6f * radius, 0.1f * radius, 8),
        at, bark);
    int green = scene.add_material(make.foliage(dice));
    Mesh needles;
    int tiers = dice.count(10, 18);
    for (int i = 0; i < tiers; ++i) {
      float t = static_cast<float>(i) / static_cast<float>(tiers);
      float r = height * 0.22f * (1.05f - t);
      needles.append(leaf_cloud(dice, {r, height * 0.035f, r}, static_cast<int>(320 * (1.1f - t)),
                                height * 0.022f),
                     Transform::move({0, mix(height * 0.15f, height * 0.97f, t), 0}));
    }
    scene.add(needles, at, green);
    return;
  }
  Mesh wood;
  std::vector<Vec3> tips;
  Vec3 lean = normalize(Vec3{0, 1, 0} + dice.unit() * 0.06f);
  int depth = bare ? 5 : 3;
  wood.append(tube({{}, lean * (0.5f * stem) + dice.unit() * (0.02f * stem), lean * stem},
                   radius * 1.25f, radius, 10),
              {});
  for (int i = dice.count(2, 4); i > 0; --i)
    grow(dice, wood, lean * stem, normalize(lean + dice.unit() * 0.7f),
         (height - stem) * (bare ? 0.3f : 0.28f), radius * 0.7f, depth - 1, tips);
  scene.add(wood, at, bark);
  if (bare) return;
  float puff = (height - stem) * dice.real(0.14, 0.25);
  leaves(dice, at, tips, {puff, puff * 0.8f, puff}, scene.add_material(make.foliage(dice)));
}

void Builder::leaves(Dice& dice, const Transform& at, const std::vector<Vec3>& centers, Vec3 puff,
                     int material) {
  constexpr float kMost = 5500, kLeafPixels = 5;
  float area =
      0.5f * kPi * puff.x * puff.y * static_cast<float>(centers.size()) * at.scale() * at.scale();
  float seen = pixel_at(at.point(centers.front()));
  float count = std::clamp(area / (kLeafPixels * seen * seen), 150.f, kMost);
  float leaf = std::sqrt(dice.real(0.8, 1.6) * area / (0.3f * count)) / at.scale();
  int each = std::max(4, static_cast<int>(count / static_cast<float>(centers.size())));
  Mesh crown;
  for (Vec3 center : centers)
    crown.append(leaf_cloud(dice, puff, each, leaf), Transform::move(center));
  scene.add(crown, at, material);
}

void Builder::bush(Dice& dice, const Transform& at, float size) {
  int green = scene.add_material(make.foliage(dice));
  Material dark = make.foliage(dice);
  for (auto& c : dark.texture.colors) c = c * 0.3f;
  Vec3 r{size * dice.real(0.4, 0.7), size * dice.real(0.35, 0.55), size * dice.real(0.4, 0.7)};
  part(blob(dice, r * 0.75f, 0.4f, 18), at, {0, r.y * 0.75f, 0}, std::move(dark));
  std::vector<Vec3> centers;
  for (int i = dice.count(5, 12); i > 0; --i) {
    Vec3 d = dice.unit();
    centers.push_back(Vec3{0, r.y, 0} + Vec3{d.x, std::abs(d.y), d.z} * r * 0.6f);
  }
  leaves(dice, at, centers, r * 0.55f, green);
}

void Builder::hedge(Dice& dice, const Transform& at, float length, float height) {
  Material m = make.foliage(dice);
  m.texture.pattern = Pattern::kLeaves;
  m.texture.frequency = dice.log_real(8, 30);
  std::uint32_t seed = dice.bits();
  float deep = dice.real(0.4, 1), rough = dice.real(0.03, 0.12);
  auto bumpy = [&](Vec3 p) { return rough * fractal3(p * 2.5f, 3, 0.6f, seed); };
  int columns = std::clamp(static_cast<int>(length * 5), 8, 90);
  Mesh front = surface(columns, 14,
                       [&](float s, float t) {
                         // Up the front, over the top, down the back.
                         float x = (s - 0.5f) * length, way = t * (2 * height + deep);
                         Vec3 p = way < height ? Vec3{x, way, -deep / 2}
                                               : (way < height + deep
                                                      ? Vec3{x, height, way - height - deep / 2}
                                                      : Vec3{x, 2 * height + deep - way, deep / 2});
                         float b = bumpy(p);
                         return p + Vec3{0, b, -b};
                       },
                       {length, 2 * height + deep});
  scene.add(front, at, std::move(m));
}

void Builder::fence(Dice& dice, const Transform& at, float length, float height) {
  int m = scene.add_material(dice.chance(0.5) ? make.wood(dice) : make.metal(dice));
  Mesh mesh;
  auto add = [&](Vec3 size, Vec3 center) { mesh.append(box(size), Transform::move(center)); };
  auto rod = [&](Vec3 a, Vec3 b, float r, int sides) {
    mesh.append(tube({a, b}, r, r, sides), {});
  };
  switch (dice.count(0, 3)) {
    case 0: {  // pickets
      float step = dice.real(0.1, 0.2), w = step * dice.real(0.3, 0.8);
      for (float x = -length / 2; x < length / 2; x += step)
        add({w, height, 0.02f}, {x, height / 2, 0});
      for (float y : {0.25f, 0.8f}) add({length, 0.07f, 0.03f}, {0, height * y, 0.025f});
      break;
    }
    case 1: {  // iron bars
      float r = std::max(0.009f, 0.5f * pixel_at(at.shift) / at.scale()),
            step = std::max(dice.real(0.09, 0.16), 5 * r);
      for (float x = -length / 2; x < length / 2; x += step) rod({x, 0, 0}, {x, height, 0}, r, 4);
      for (float y : {0.1f, 0.95f}) add({length, 0.03f, 0.03f}, {0, height * y, 0});
      break;
    }
    case 2: {                                                // wire mesh between posts
      float thin = 0.45f * pixel_at(at.shift) / at.scale();  // finer wires would only flicker
      float r = std::max(dice.real(0.002, 0.005), thin),
            step = std::max(dice.real(0.08, 0.2), 8 * r);
      for (float x = -length / 2; x < length / 2; x += step) rod({x, 0, 0}, {x, height, 0}, r, 3);
      for (float y = step; y < height; y += step)
        rod({-length / 2, y, 0}, {length / 2, y, 0}, r, 3);
      for (float x = -length / 2; x <= length / 2; x += 2)
        rod({x, 0, 0}, {x, height * 1.05f, 0}, 0.025f, 7);
      break;
    }
    default: {  // rails on posts
      int rails = dice.count(1, 3);
      for (float x = -length / 2; x <= length / 2; x += 1.6f)
        add({0.09f, height, 0.09f}, {x, height / 2, 0});
      for (int i = 0; i < rails; ++i)
        add({length, dice.real(0.04, 0.25), 0.04f},
            {0,
             height * (0.4f + 0.5f * static_cast<float>(i + 1) / static_cast<float>(rails)) * 0.9f,
             -0.06f});
    }
  }
  scene.add(mesh, at, m);
}

void Builder::lamp_post(Dice& dice, const Transform& at) {
  int m = scene.add_material(make.metal(dice));
  float h = dice.real(3.5, 8), r = dice.real(0.04, 0.09);
  scene.add(tube({{0, 0, 0}, {0, h * 0.5f, 0}, {0, h, 0}}, r, r * 0.6f, 9), at, m);
  if (dice.chance(0.5)) {
    float out = dice.real(0.6, 2);
    scene.add(
        tube({{0, h, 0}, {out * 0.5f, h + 0.25f, 0}, {out, h + 0.3f, 0}}, r * 0.6f, r * 0.5f, 7),
        at, m);
    part(superquadric({0.3f, 0.07f, 0.14f}, 0.6f, 0.6f, 16), at, {out + 0.2f, h + 0.28f, 0},
         make.paint(dice));
  } else {
    part(dice.chance(0.5) ? ellipsoid({0.2f, 0.2f, 0.2f}, 16) : cone(0.1f, 0.22f, 0.35f, 8), at,
         {0, h, 0}, make.paint(dice));
  }
}

void Builder::sign(Dice& dice, const Transform& at) {
  int m = scene.add_material(make.metal(dice));
  float h = dice.real(1.8, 3), size = dice.real(0.35, 0.8);
  bar(at, {}, {0, h, 0}, dice.real(0.02, 0.05), m, 8);
  std::vector<Vec2> outline;
  int kind = dice.count(0, 3), corners = kind == 0 ? 3 : (kind == 1 ? 24 : (kind == 2 ? 8 : 4));
  float phase =
      kind == 0 ? (dice.chance(0.5) ? 0.5f * kPi : -0.5f * kPi) : kPi / static_cast<float>(corners);
  for (int i = 0; i < corners; ++i) {
    float a = phase + 2 * kPi * static_cast<float>(i) / static_cast<float>(corners);
    outline.push_back({0.6f * size * std::cos(a),
                       0.6f * size * std::sin(a) * (kind == 3 ? dice.real(0.5, 0.5) + 0.4f : 1.f)});
  }
  Vec3 place{0, h - 0.3f * size, -0.06f};
  Material rim = make.paint(dice),
           face = dice.chance(0.5) ? make.paint(dice) : make.paper(dice, size);
  if (dice.chance(0.5))
    rim.texture.colors[0] =
        dice.pick({Vec3{0.45f, 0.02f, 0.02f}, Vec3{0.02f, 0.06f, 0.35f}, Vec3{0.6f, 0.6f, 0.6f}});
  part(extrusion(outline, 0.015f), at, place, std::move(rim));
  for (auto& p : outline) p = p * 0.78f;
  part(extrusion(outline, 0.015f), at, place + Vec3{0, 0, -0.006f}, std::move(face));
  if (dice.chance(0.4))
    part(box({size * 0.9f, 0.2f * size, 0.01f}), at, {0, h - 1.1f * size, -0.05f},
         make.paper(dice, 0.2f * size));
}

void Builder::traffic_light(Dice& dice, const Transform& at) {
  int m = scene.add_material(make.metal(dice)), black = scene.add_material(make.rubber(dice));
  float h = dice.real(2.6, 4);
  bar(at, {}, {0, h, 0}, 0.06f, m, 9);
  part(box({0.3f, 0.9f, 0.22f}), at, {0, h - 0.3f, -0.15f}, black);
  int lit = dice.count(0, 2);
  const Vec3 colors[3] = {{0.9f, 0.03f, 0.02f}, {0.9f, 0.5f, 0.02f}, {0.03f, 0.8f, 0.2f}};
  for (int i = 0; i < 3; ++i) {
    Material lamp = make.paint(dice);
    lamp.texture.colors[0] = colors[i] * (i == lit ? 1.f : 0.12f);
    if (i == lit) lamp.emission = 2;
    part(ellipsoid({0.1f, 0.1f, 0.04f}, 14), at,
         {0, h - 0.02f - 0.28f * static_cast<float>(i), -0.265f}, std::move(lamp));
  }
}

void Builder::bollard(Dice& dice, const Transform& at) {
  float h = dice.real(0.6, 1.1), r = dice.real(0.04, 0.12);
  int m = scene.add_material(dice.chance(0.5) ? make.metal(dice) : make.paint(dice));
  part(cylinder(r, h, 14), at, {}, m);
  if (dice.chance(0.5)) part(ellipsoid({r * 1.3f, r * 1.3f, r * 1.3f}, 14), at, {0, h, 0}, m);
  if (dice.chance(0.4))
    part(cylinder(r * 1.04f, h * 0.12f, 14), at, {0, h * 0.75f, 0}, make.paint(dice));
}

void Builder::bench(Dice& dice, const Transform& at) {
  int wood = scene.add_material(make.wood(dice)), metal = scene.add_material(make.metal(dice));
  float w = dice.real(1.2, 2);
  for (int i = 0; i < 4; ++i) {
    part(box({w, 0.035f, 0.09f}), at, {0, 0.45f, -0.2f + 0.11f * static_cast<float>(i)}, wood);
    if (i < 3)
      part(box({w, 0.09f, 0.03f}), at,
           {0, 0.58f + 0.13f * static_cast<float>(i), 0.24f + 0.02f * static_cast<float>(i)}, wood);
  }
  for (float s : {-0.42f, 0.42f}) {
    bar(at, {s * w, 0, -0.2f}, {s * w, 0.45f, -0.18f}, 0.025f, metal);
    bar(at, {s * w, 0, 0.25f}, {s * w, 0.9f, 0.3f}, 0.025f, metal);
    bar(at, {s * w, 0.44f, -0.2f}, {s * w, 0.44f, 0.25f}, 0.02f, metal);
  }
}

void Builder::bin(Dice& dice, const Transform& at) {
  float h = dice.real(0.7, 1.3), w = dice.real(0.4, 0.7);
  if (dice.chance(0.5)) {
    part(cone(w * 0.4f, w * 0.5f, h, 18), at, {}, make.any(dice, h));
  } else {
    part(extrusion({{-w / 2 * 0.8f, 0}, {w / 2 * 0.8f, 0}, {w / 2, h}, {-w / 2, h}}, w), at, {},
         make.paint(dice));
    part(box({w * 1.08f, 0.06f, w * 1.1f}), at, {0, h, 0}, make.paint(dice));
  }
}

void Builder::person(Dice& dice, const Transform& at, float h) {
  int shirt = scene.add_material(make.cloth(dice, 0.6f)),
      trousers = scene.add_material(make.cloth(dice, 0.6f));
  Material s = make.paint(dice);
  s.texture.colors[0] = Vec3{0.55f, 0.33f, 0.23f} * dice.real(0.3, 1.1);
  int skin = scene.add_material(std::move(s));
  int hair = scene.add_material(make.rubber(dice));
  float stride = dice.real(-0.22, 0.22) * h, arm = dice.real(-0.2, 0.2) * h;
  for (float side : {-1.f, 1.f}) {
    Vec3 hip{side * 0.055f * h, 0.5f * h, 0},
        knee{side * 0.06f * h, 0.27f * h, -side * stride * 0.5f - 0.02f * h},
        foot{side * 0.06f * h, 0.02f * h, -side * stride};
    scene.add(tube({hip, knee, foot}, 0.052f * h, 0.03f * h, 10), at, trousers);
    part(superquadric(Vec3{0.03f, 0.022f, 0.065f} * h, 0.7f, 0.7f, 12), at,
         foot + Vec3{0, 0, -0.03f * h}, hair);
    Vec3 shoulder{side * 0.115f * h, 0.8f * h, 0},
        elbow{side * 0.15f * h, 0.62f * h, side * arm * 0.4f},
        hand{side * 0.13f * h, 0.47f * h, side * arm - 0.03f * h};
    scene.add(tube({shoulder, elbow, hand}, 0.033f * h, 0.02f * h, 8), at, shirt);
    part(ellipsoid(Vec3{0.022f, 0.035f, 0.022f} * h, 10), at, hand, skin);
  }
  part(superquadric(Vec3{0.115f, 0.18f, 0.07f} * h, 0.7f, 0.8f, 20), at, {0, 0.66f * h, 0}, shirt);
  bar(at, {0, 0.8f * h, 0}, {0, 0.88f * h, 0}, 0.03f * h, skin);
  part(ellipsoid(Vec3{0.045f, 0.065f, 0.055f} * h, 16), at, {0, 0.92f * h, 0}, skin);
  part(ellipsoid(Vec3{0.05f, 0.05f, 0.058f} * h, 14), at, {0, 0.95f * h, 0.01f * h}, hair);
  if (dice.chance(0.3))
    part(superquadric(Vec3{0.09f, 0.12f, 0.05f} * h, 0.5f, 0.5f, 16), at, {0, 0.68f * h, 0.1f * h},
         make.cloth(dice, 0.4f));
}

void Builder::rock(Dice& dice, const Transform& at, float size) {
  Vec3 r{size * dice.real(0.35, 0.6), size * dice.real(0.2, 0.5), size * dice.real(0.35, 0.6)};
  part(blob(dice, r, dice.real(0.2, 0.55), 30), at, {0, r.y * 0.5f, 0}, make.rock(dice));
}

void Builder::tuft(Dice& dice, const Transform& at, float size) {
  scene.add(blades(dice, dice.count(10, 30), size, size * dice.real(0.02, 0.08), dice.real(0.4, 1)),
            at, make.foliage(dice));
}

void Builder::wires(Dice& dice, Vec3 from, Vec3 to, int count) {
  int black = scene.add_material(make.rubber(dice));
  float sag = dice.real(0.01, 0.05) * length(to - from),
        r = std::max(dice.real(0.004, 0.02), 0.55f * pixel_at(mix(from, to, 0.5f)));
  for (int i = 0; i < count; ++i) {
    Vec3 shift{0.25f * static_cast<float>(i), 0.2f * static_cast<float>(i % 2), 0};
    std::vector<Vec3> path;
    for (int k = 0; k <= 16; ++k) {
      float t = static_cast<float>(k) / 16;
      path.push_back(mix(from, to, t) + shift - Vec3{0, 4 * sag * t * (1 - t), 0});
    }
    scene.add(tube(path, r, r, 4), {}, black);
  }
}

void Builder::building(Dice& dice, const Transform& at, float width, float height, float depth) {
  int wall = scene.add_material(make.facade(dice));
  part(box({width, height, depth}), at, {0, height / 2, depth / 2}, wall);
  int glass = scene.add_material(make.window(dice));
  int trim = scene.add_material(make.paint(dice));
  float floor_height = dice.real(2.7, 3.6), step = dice.real(1.6, 3.4);
  float w = step * dice.real(0.35, 0.65), h = floor_height * dice.real(0.4, 0.62),
        edge = dice.real(0.05, 0.12);
  bool balconies = dice.chance(0.2), sills = dice.chance(0.7), shutters = dice.chance(0.2);
  Mesh panes, frames, rails;
  int rows = std::max(1, static_cast<int>(height / floor_height)),
      columns = std::max(1, static_cast<int>(width / step));
  for (int j = 0; j < rows; ++j)
    for (int i = 0; i < columns; ++i) {
      float x = width * ((static_cast<float>(i) + 0.5f) / static_cast<float>(columns) - 0.5f);
      float y = (static_cast<float>(j) + 0.5f) * height / static_cast<float>(rows);
      if (j == 0 && dice.chance(0.25)) {  // a door or a shop window
        part(box({w * 1.1f, height / static_cast<float>(rows) * 0.75f, 0.06f}), at,
             {x, height / static_cast<float>(rows) * 0.375f, -0.01f},
             dice.chance(0.5) ? make.wood(dice) : make.window(dice));
        continue;
      }
      if (dice.chance(0.06)) continue;
      panes.append(rectangle(w, h), Transform::move({x, y, -0.012f}));
      for (float s : {-1.f, 1.f}) {
        frames.append(box({edge, h + edge, 0.07f}), Transform::move({x + s * w / 2, y, -0.02f}));
        frames.append(box({w + edge, edge, 0.07f}), Transform::move({x, y + s * h / 2, -0.02f}));
        if (shutters)
          frames.append(box({w * 0.45f, h, 0.04f}),
                        Transform::move({x + s * w * 0.75f, y, -0.03f}));
      }
      frames.append(box({edge * 0.5f, h, 0.03f}), Transform::move({x, y, -0.02f}));
      if (sills)
        frames.append(box({w * 1.25f, 0.06f, 0.22f}),
                      Transform::move({x, y - h / 2 - edge, -0.1f}));
      if (balconies && j > 0 && dice.chance(0.7)) {
        rails.append(box({w * 1.6f, 0.12f, 1}), Transform::move({x, y - h / 2 - 0.1f, -0.5f}));
        rails.append(box({w * 1.6f, 0.05f, 0.05f}),
                     Transform::move({x, y - h / 2 + 0.85f, -0.98f}));
        for (float u = -0.8f; u <= 0.81f; u += 0.2f)
          rails.append(
              tube({{x + u * w, y - h / 2 - 0.1f, -0.98f}, {x + u * w, y - h / 2 + 0.85f, -0.98f}},
                   0.015f, 0.015f, 3),
              {});
      }
    }
  scene.add(panes, at, glass);
  scene.add(frames, at, trim);
  if (!rails.triangles.empty()) scene.add(rails, at, make.metal(dice));
  if (dice.chance(0.6))
    part(box({width, dice.real(0.15, 0.5), 0.3f}), at, {0, height, -0.12f}, trim);
  if (dice.chance(0.5)) {  // a gable roof
    float rise = dice.real(1, 3.5), over = 0.4f;
    Material tiles = make.facade(dice);
    tiles.texture.pattern = Pattern::kTiles, tiles.texture.frequency = dice.real(2.5, 5);
    scene.add(extrusion({{-depth / 2 - over, 0}, {depth / 2 + over, 0}, {0, rise}}, width + over),
              at * Transform::move({0, height, depth / 2}) * Transform::turn_y(0.5f * kPi),
              std::move(tiles));
  }
  if (dice.chance(0.4))
    part(box({width, dice.real(0.3, 1), 0.05f}), at, {0, 0.2f, -0.02f}, make.rock(dice));
  if (dice.chance(0.3)) {  // letters or an awning over the ground floor
    float y = height / static_cast<float>(rows) * 0.92f;
    part(box({width * dice.real(0.3, 0.8), 0.5f, 0.1f}), at,
         {dice.real(-0.1, 0.1) * width, y, -0.08f}, make.paper(dice, 0.5f));
  }
  if (dice.chance(0.5))
    bar(at, {width / 2 - 0.2f, 0, -0.08f}, {width / 2 - 0.2f, height, -0.08f}, 0.05f, trim);
}

void Builder::frame_work(Dice& dice, const Transform& at, float size) {
  int m = scene.add_material(dice.chance(0.5) ? make.metal(dice) : make.wood(dice));
  int n = dice.count(2, 4);
  float step = size / static_cast<float>(n), r = dice.real(0.015, 0.06);
  for (int i = 0; i <= n; ++i)
    for (int j = 0; j <= n; ++j) {
      float a = (static_cast<float>(i) / static_cast<float>(n) - 0.5f) * size;
      float b = step * static_cast<float>(j), half = size / 2;
      for (float z : {-0.5f, 0.5f}) {
        if (j == 0) bar(at, {a, 0, z * size}, {a, size, z * size}, r, m, 6);
        if (i == 0 && j > 0) bar(at, {-half, b, z * size}, {half, b, z * size}, r, m, 6);
      }
      if (j > 0 && dice.chance(0.6)) bar(at, {a, b, -half}, {a, b, half}, r, m, 6);
    }
}

}  // namespace nmrf::synth
