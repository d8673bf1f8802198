// Things found indoors.
#include "synth/builder.h"

namespace nmrf::synth {

int Builder::amount(Dice& dice, double count) const {
  return static_cast<int>(std::floor(count * options.clutter + dice.uniform()));
}

int Builder::thin_amount(Dice& dice, double count) const {
  return static_cast<int>(std::floor(count * options.thin + dice.uniform()));
}

void Builder::part(const Mesh& mesh, const Transform& at, Vec3 offset, int material) {
  scene.add(mesh, at * Transform::move(offset), material);
}

void Builder::bar(const Transform& at, Vec3 from, Vec3 to, float radius, int material,
                  int segments) {
  scene.add(tube({from, to}, radius, radius, segments), at, material);
}

// Four legs below a top of `size` (its height is size.y).
void Builder::leg_frame(const Transform& at, Vec3 size, float thickness, bool round, int material) {
  float x = size.x / 2 - thickness, z = size.z / 2 - thickness;
  for (float sx : {-1.f, 1.f})
    for (float sz : {-1.f, 1.f}) {
      if (round)
        bar(at, {sx * x, 0, sz * z}, {sx * x * 0.9f, size.y, sz * z * 0.9f}, thickness / 2,
            material);
      else
        part(box({thickness, size.y, thickness}), at, {sx * x, size.y / 2, sz * z}, material);
    }
}

void Builder::chair(Dice& dice, const Transform& at) {
  int frame = scene.add_material(dice.chance(0.6) ? make.wood(dice) : make.metal(dice));
  int seat = dice.chance(0.5) ? frame : scene.add_material(make.cloth(dice, 0.5f));
  float w = dice.real(0.38, 0.55), d = dice.real(0.38, 0.5), h = dice.real(0.4, 0.5);
  float back = dice.real(0.35, 0.6), leg = dice.real(0.02, 0.05);
  bool round = dice.chance(0.5);
  leg_frame(at, {w, h, d}, leg, round, frame);
  part(box({w, dice.real(0.02, 0.08), d}), at, {0, h, 0}, seat);
  float z = d / 2 - leg / 2;
  for (float sx : {-1.f, 1.f})
    bar(at, {sx * (w / 2 - leg), h, z}, {sx * (w / 2 - leg), h + back, z + 0.06f}, leg / 2, frame);
  int style = dice.count(0, 2);
  if (style == 0) {
    part(box({w, back * 0.55f, 0.02f}), at, {0, h + back * 0.7f, z + 0.05f}, seat);
  } else if (style == 1) {
    for (int i = 0; i < 3; ++i)
      part(box({w, 0.05f, 0.015f}), at,
           {0, h + back * (0.35f + 0.3f * static_cast<float>(i)), z + 0.045f}, frame);
  } else {
    int slats = dice.count(4, 8);
    part(box({w, 0.05f, 0.02f}), at, {0, h + back, z + 0.06f}, frame);
    for (int i = 0; i < slats; ++i) {
      float x = (static_cast<float>(i + 1) / static_cast<float>(slats + 1) - 0.5f) * (w - leg);
      bar(at, {x, h, z}, {x, h + back, z + 0.06f}, 0.009f, frame);
    }
  }
  if (dice.chance(0.3))
    for (float sx : {-1.f, 1.f}) part(box({0.04f, 0.03f, d}), at, {sx * w / 2, h + 0.2f, 0}, frame);
}

float Builder::table(Dice& dice, const Transform& at, float w, float d, float h) {
  int top = scene.add_material(dice.chance(0.6) ? make.wood(dice) : make.any(dice, w));
  int legs = dice.chance(0.5) ? top : scene.add_material(make.metal(dice));
  float thick = dice.real(0.02, 0.06);
  if (dice.chance(0.2)) {
    part(cylinder(w / 2, thick, 32), at, {0, h - thick, 0}, top);
    part(cone(0.05f, 0.03f, h - thick), at, {}, legs);
    part(cylinder(w / 4, 0.03f), at, {}, legs);
  } else {
    part(box({w, thick, d}), at, {0, h - thick / 2, 0}, top);
    leg_frame(at, {w, h - thick, d}, dice.real(0.03, 0.08), dice.chance(0.4), legs);
    if (dice.chance(0.4))
      part(box({w * 0.9f, 0.09f, d * 0.9f}), at, {0, h - thick - 0.045f, 0}, legs);
  }
  return h;
}

void Builder::book_row(Dice& dice, const Transform& at, float length, float height) {
  float x = -length / 2;
  while (x < length / 2 - 0.03f) {
    float t = dice.real(0.012, 0.06), h = height * dice.real(0.6, 1), d = h * dice.real(0.6, 0.8);
    if (x + t > length / 2) break;
    if (dice.chance(0.08)) {  // a gap, or a leaning book
      float lean = dice.real(-0.3, 0.3);
      part(box({t, h, d}),
           at * Transform::move({x + 0.12f, h / 2 + 0.01f, 0}) * Transform::turn_z(lean), {},
           make.paper(dice, h));
      x += 0.24f;
      continue;
    }
    part(box({t, h, d}), at, {x + t / 2, h / 2, dice.real(-0.02, 0.02)}, make.paper(dice, h));
    x += t + 0.001f;
  }
}

void Builder::book_pile(Dice& dice, const Transform& at) {
  float y = 0;
  for (int i = dice.count(2, 7); i > 0; --i) {
    float t = dice.real(0.012, 0.06), w = dice.real(0.14, 0.3);
    part(box({w, t, w * dice.real(0.65, 0.85)}),
         at * Transform::move({dice.real(-0.03, 0.03), y + t / 2, dice.real(-0.03, 0.03)}) *
             Transform::turn_y(dice.normal(0.25)),
         {}, make.paper(dice, w));
    y += t;
  }
}

void Builder::shelf(Dice& dice, const Transform& at, float width, float height) {
  int frame = scene.add_material(dice.chance(0.7) ? make.wood(dice) : make.metal(dice));
  float depth = dice.real(0.25, 0.45), board = 0.02f;
  int levels = std::max(2, static_cast<int>(height / dice.real(0.28, 0.5)));
  bool open = dice.chance(0.5);
  for (float s : {-1.f, 1.f}) {
    if (open) {
      for (float z : {-1.f, 1.f})
        part(box({0.035f, height, 0.035f}), at, {s * width / 2, height / 2, z * depth / 2}, frame);
    } else {
      part(box({board, height, depth}), at, {s * width / 2, height / 2, 0}, frame);
    }
  }
  if (!open && dice.chance(0.7))
    part(box({width, height, 0.01f}), at, {0, height / 2, depth / 2}, frame);
  float gap = height / static_cast<float>(levels);
  for (int i = 0; i <= levels; ++i) {
    float y = gap * static_cast<float>(i);
    part(box({width, board, depth}), at, {0, y, 0}, frame);
    if (i == levels && dice.chance(0.5)) break;
    Transform here = at * Transform::move({0, y + board / 2, -0.02f});
    if (dice.chance(0.55)) {
      float length = width * dice.real(0.5, 0.95);
      book_row(dice, here * Transform::move({(width - length) * dice.real(-0.45, 0.45), 0, 0}),
               length, gap * 0.85f);
    } else {
      for (int k = amount(dice, 3 * width); k > 0; --k)
        small_thing(dice,
                    here * Transform::move(
                               {dice.real(-0.45, 0.45) * width, 0, dice.real(-0.25, 0.2) * depth}),
                    gap * dice.real(0.3, 0.8));
    }
  }
}

void Builder::sofa(Dice& dice, const Transform& at) {
  int cloth = scene.add_material(make.cloth(dice, 0.8f));
  int second = dice.chance(0.5) ? cloth : scene.add_material(make.cloth(dice, 0.5f));
  float w = dice.real(0.8, 2.2), round = dice.real(0.15, 0.4);
  auto cushion = [&](Vec3 size) { return superquadric(size * 0.5f, round, round, 24); };
  part(cushion({w, 0.4f, 0.85f}), at, {0, 0.25f, 0}, cloth);
  part(cushion({w, 0.6f, 0.25f}), at, {0, 0.6f, 0.35f}, cloth);
  for (float s : {-1.f, 1.f}) part(cushion({0.2f, 0.6f, 0.85f}), at, {s * w / 2, 0.35f, 0}, cloth);
  int seats = std::max(1, static_cast<int>(w / 0.65f));
  for (int i = 0; i < seats; ++i) {
    float x = w * ((static_cast<float>(i) + 0.5f) / static_cast<float>(seats) - 0.5f);
    part(cushion({w / static_cast<float>(seats) * 0.95f, 0.18f, 0.7f}), at, {x, 0.5f, -0.05f},
         second);
    if (dice.chance(0.4))
      scene.add(superquadric({0.22f, 0.22f, 0.08f}, 0.7f, 0.6f, 24),
                at * Transform::move({x, 0.75f, 0.1f}) * Transform::turn_x(-0.4f) *
                    Transform::turn_z(dice.real(-0.6, 0.6)),
                make.cloth(dice, 0.4f));
  }
}

void Builder::floor_lamp(Dice& dice, const Transform& at) {
  int metal = scene.add_material(make.metal(dice));
  float h = dice.real(1.1, 1.8);
  part(cylinder(0.14f, 0.03f), at, {}, metal);
  bar(at, {0, 0, 0}, {0, h, 0}, dice.real(0.008, 0.02), metal);
  Material shade = make.paint(dice);
  shade.backlight = 0.6f;
  if (dice.chance(0.5)) shade.emission = dice.real(0.2, 1);
  float r = dice.real(0.12, 0.28);
  part(lathe({{r, h - 0.1f}, {r * dice.real(0.4, 1), h + 0.2f}}), at, {}, shade);
}

void Builder::vessel(Dice& dice, const Transform& at, float height) {
  std::vector<Vec2> profile;
  float h = height;
  switch (dice.count(0, 5)) {
    case 0: {  // vase: a random smooth profile
      float r = h * dice.real(0.15, 0.35), p = dice.real(0, 6.28), q = dice.real(2, 7);
      profile.push_back({0, 0});
      for (int i = 0; i <= 12; ++i) {
        float t = static_cast<float>(i) / 12;
        profile.push_back({r * (0.65f + 0.35f * std::sin(p + q * t)), h * t});
      }
      break;
    }
    case 1: {  // bottle
      float r = h * dice.real(0.12, 0.2), neck = r * dice.real(0.25, 0.5);
      profile = {{0, 0},
                 {r, 0},
                 {r, h * 0.02f},
                 {r, h * 0.55f},
                 {r * 0.9f, h * 0.62f},
                 {neck, h * 0.75f},
                 {neck, h},
                 {0, h}};
      break;
    }
    case 2: {  // bowl
      float r = h * dice.real(0.7, 1.1);
      for (int i = 0; i <= 8; ++i) {
        float t = static_cast<float>(i) / 8;
        profile.push_back({r * std::sin(t * 1.45f), h * (1 - std::cos(t * 1.5f))});
      }
      break;
    }
    case 3: {  // flower pot
      float r = h * dice.real(0.3, 0.5), rim = h * 0.2f;
      profile = {{0, 0},         {r, 0},         {r * 1.25f, h - rim}, {r * 1.42f, h - rim},
                 {r * 1.45f, h}, {r * 1.25f, h}, {r * 1.2f, h * 0.9f}, {0, h * 0.88f}};
      scene.add(lathe(profile, 28, false), at,
                dice.chance(0.6) ? make.rock(dice) : make.any(dice, h));
      return;
    }
    case 4:  // can
      scene.add(cylinder(h * dice.real(0.25, 0.45), h, 24), at, make.paper(dice, h));
      return;
    default:  // cone or lampshade
      scene.add(cone(h * dice.real(0.25, 0.5), h * dice.real(0.01, 0.3), h, 24), at,
                make.any(dice, h));
      return;
  }
  scene.add(lathe(profile, 28), at, make.any(dice, h));
}

void Builder::plant(Dice& dice, const Transform& at, float height) {
  float pot = height * dice.real(0.2, 0.35), r = pot * dice.real(0.4, 0.6);
  part(lathe({{0, 0}, {r * 0.8f, 0}, {r, pot}, {r * 0.9f, pot}, {0, pot * 0.92f}}, 24, false), at,
       {}, dice.chance(0.5) ? make.rock(dice) : make.any(dice, pot));
  int green = scene.add_material(make.foliage(dice));
  float rest = height - pot;
  if (dice.chance(0.55)) {
    part(blades(dice, dice.count(8, 26), rest * 1.1f, rest * dice.real(0.06, 0.2),
                dice.real(0.5, 1.5)),
         at, {0, pot * 0.9f, 0}, green);
  } else {
    bar(at, {0, pot * 0.9f, 0}, {0, pot + rest * 0.6f, 0}, 0.012f * height,
        scene.add_material(make.bark(dice)));
    part(leaf_cloud(dice, Vec3{0.55f, 0.5f, 0.55f} * rest, dice.count(60, 220),
                    rest * dice.real(0.12, 0.3)),
         at, {0, pot + rest * 0.5f, 0}, green);
  }
}

void Builder::picture(Dice& dice, const Transform& at, float width, float height) {
  float edge = dice.real(0.01, 0.06), deep = dice.real(0.01, 0.05);
  if (dice.chance(0.75)) {
    int frame = scene.add_material(dice.chance(0.5) ? make.wood(dice) : make.paint(dice));
    for (float s : {-1.f, 1.f}) {
      part(box({width + 2 * edge, edge, deep}), at, {0, s * (height + edge) / 2, -deep / 2}, frame);
      part(box({edge, height, deep}), at, {s * (width + edge) / 2, 0, -deep / 2}, frame);
    }
  }
  Material face = make.picture(dice, height);
  if (dice.chance(options.shiny)) face.specular = 0.4f, face.shininess = 80;
  if (dice.chance(2 * options.mirror)) face.mirror = dice.real(0.3, 0.9);
  part(rectangle(width, height), at, {0, 0, -0.004f}, std::move(face));
}

void Builder::carton(Dice& dice, const Transform& at, float size) {
  Vec3 s{size * dice.real(0.5, 1), size * dice.real(0.35, 1), size * dice.real(0.5, 1)};
  Material m = dice.chance(0.4) ? make.paper(dice, size) : make.any(dice, size);
  int id = scene.add_material(std::move(m));
  part(box(s), at, {0, s.y / 2, 0}, id);
  if (dice.chance(0.35))  // a label
    part(rectangle(s.x * dice.real(0.3, 0.8), s.y * dice.real(0.2, 0.7)), at,
         {0, s.y / 2, -s.z / 2 - 0.002f}, make.paper(dice, s.y));
  if (dice.chance(0.25))  // open flaps
    for (float side : {-1.f, 1.f})
      scene.add(rectangle(s.x * 0.48f, s.z),
                at * Transform::move({side * s.x * 0.62f, s.y + s.x * 0.16f, 0}) *
                    Transform::turn_z(side * 0.9f) * Transform::turn_x(0.5f * kPi),
                id);
}

void Builder::figure(Dice& dice, const Transform& at, float h) {
  int body = scene.add_material(dice.chance(0.6) ? make.cloth(dice, h) : make.any(dice, h));
  int skin = dice.chance(0.4) ? body : scene.add_material(make.paint(dice));
  float fat = dice.real(0.7, 1.4);
  part(superquadric(Vec3{0.14f * fat, 0.22f, 0.12f * fat} * h, 0.8f, 0.9f, 22), at,
       {0, 0.4f * h, 0}, body);
  part(ellipsoid(Vec3{0.13f, 0.15f, 0.13f} * h * dice.real(0.8, 1.2), 18), at, {0, 0.74f * h, 0},
       skin);
  for (float s : {-1.f, 1.f}) {
    float swing = dice.real(-0.15, 0.15) * h;
    bar(at, {s * 0.08f * h, 0.3f * h, 0}, {s * 0.1f * h, 0, -swing}, 0.05f * h, body, 9);
    bar(at, {s * 0.12f * fat * h, 0.52f * h, 0},
        {s * 0.28f * h, dice.real(0.2, 0.75) * h, -0.1f * h}, 0.04f * h, skin, 9);
    if (dice.chance(0.4))
      part(ellipsoid(Vec3{0.05f, 0.07f, 0.03f} * h, 12), at, {s * 0.1f * h, 0.88f * h, 0}, body);
    part(ellipsoid(Vec3{0.02f, 0.02f, 0.02f} * h, 8), at, {s * 0.05f * h, 0.77f * h, -0.12f * h},
         make.rubber(dice));
  }
  if (dice.chance(0.4))
    part(cone(0.13f * h, 0.02f * h, 0.2f * h, 16), at, {0, 0.84f * h, 0}, make.any(dice, 0.2f * h));
}

void Builder::crate(Dice& dice, const Transform& at, float size) {
  int wood = scene.add_material(make.wood(dice));
  int slats = dice.count(2, 4);
  float h = size * dice.real(0.5, 1), board = h / static_cast<float>(slats) * dice.real(0.5, 0.85);
  for (int i = 0; i < slats; ++i) {
    float y = h * (static_cast<float>(i) + 0.5f) / static_cast<float>(slats);
    for (float s : {-1.f, 1.f}) {
      part(box({size, board, 0.02f * size}), at, {0, y, s * size / 2}, wood);
      part(box({0.02f * size, board, size}), at, {s * size / 2, y, 0}, wood);
    }
  }
  part(box({size, 0.02f * size, size}), at, {0, 0.01f * size, 0}, wood);
  for (int i = amount(dice, 3); i > 0; --i)
    small_thing(dice,
                at * Transform::move(
                         {dice.real(-0.3, 0.3) * size, 0.02f * size, dice.real(-0.3, 0.3) * size}),
                h * dice.real(0.5, 1.1));
}

void Builder::screen(Dice& dice, const Transform& at) {
  float w = dice.real(0.35, 0.9), h = w * 0.58f;
  int shell = scene.add_material(make.rubber(dice));
  part(box({w + 0.03f, h + 0.03f, 0.04f}), at, {0, h / 2 + 0.12f, 0}, shell);
  bar(at, {0, 0, 0.02f}, {0, 0.14f, 0.02f}, 0.02f, shell);
  part(box({w * 0.4f, 0.015f, 0.18f}), at, {0, 0.008f, 0}, shell);
  Material face = dice.chance(0.5) ? make.picture(dice, h) : make.window(dice);
  if (dice.chance(0.5)) face.emission = dice.real(0.3, 1);
  part(rectangle(w, h), at, {0, h / 2 + 0.12f, -0.022f}, std::move(face));
}

void Builder::ladder(Dice& dice, const Transform& at, float h) {
  int m = scene.add_material(dice.chance(0.5) ? make.wood(dice) : make.metal(dice));
  float w = dice.real(0.3, 0.5), r = dice.real(0.012, 0.03);
  for (float s : {-1.f, 1.f}) bar(at, {s * w / 2, 0, 0}, {s * w / 2 * 0.85f, h, h * 0.15f}, r, m);
  for (float y = 0.25f; y < h - 0.1f; y += 0.28f)
    bar(at, {-w / 2, y, y * 0.15f}, {w / 2, y, y * 0.15f}, r * 0.8f, m);
}

void Builder::small_thing(Dice& dice, const Transform& at, float size) {
  Transform here = at * Transform::turn_y(dice.real(0, 2 * kPi));
  switch (dice.weighted(std::initializer_list<double>{3, 2, 2, 1.2, 2, 1, 0.8, 0.6})) {
    case 0:
      vessel(dice, here, size);
      break;
    case 1:
      carton(dice, here, size);
      break;
    case 2:
      solid(dice, here * Transform::move({0, size * 0.45f, 0}), size * 0.9f);
      break;
    case 3:
      plant(dice, here, size * 1.3f);
      break;
    case 4:
      figure(dice, at * Transform::turn_y(dice.real(-0.8, 0.8)), size);
      break;
    case 5:
      book_pile(dice, here * Transform::scaled(size / 0.25f));
      break;
    case 6:
      crate(dice, here, size);
      break;
    default: {  // a ball
      part(ellipsoid({size / 2, size / 2, size / 2}, 26), here, {0, size / 2, 0},
           make.any(dice, size));
    }
  }
}

}  // namespace nmrf::synth
