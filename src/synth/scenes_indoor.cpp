// Rooms and still lifes.
#include "synth/noise.h"
#include "synth/scenes.h"

namespace nmrf::synth {

void build_room(Builder& b, Dice& dice, StereoCamera& camera) {
  Scene& scene = b.scene;
  float w = dice.real(2.4, 7), d = dice.real(3, 9), h = dice.real(2.3, 3.4);
  // Floor, ceiling, four walls, each facing inwards; the room's centre line is x = 0, z from 0 to
  // d.
  int wall = scene.add_material(b.make.wall(dice));
  int far_wall = dice.chance(0.5) ? wall : scene.add_material(b.make.wall(dice));
  int side_wall = dice.chance(0.7) ? wall : scene.add_material(b.make.wall(dice));
  auto face = [&](Mesh mesh, Vec3 place, const Transform& turn, int material) {
    scene.add(mesh, Transform::move(place) * turn, material);
  };
  face(rectangle(w, d), {0, 0, d / 2}, Transform::turn_x(0.5f * kPi),
       scene.add_material(b.make.floor(dice)));
  Material ceiling = b.make.paint(dice);
  ceiling.texture.colors[0] = Vec3{0.75f, 0.74f, 0.7f} * dice.real(0.5, 1.1);
  face(rectangle(w, d), {0, h, d / 2}, Transform::turn_x(0.5f * kPi),
       scene.add_material(std::move(ceiling)));
  face(rectangle(w, h), {0, h / 2, d}, {}, far_wall);
  face(rectangle(w, h), {0, h / 2, 0}, Transform::turn_y(kPi), wall);
  for (float s : {-1.f, 1.f})
    face(rectangle(d, h), {s * w / 2, h / 2, d / 2}, Transform::turn_y(s * 0.5f * kPi), side_wall);
  if (dice.chance(0.6)) {  // skirting
    int skirt = scene.add_material(dice.chance(0.5) ? b.make.wood(dice) : b.make.paint(dice));
    b.part(box({w, 0.1f, 0.03f}), {}, {0, 0.05f, d - 0.01f}, skirt);
    for (float s : {-1.f, 1.f})
      b.part(box({0.03f, 0.1f, d}), {}, {s * (w / 2 - 0.01f), 0.05f, d / 2}, skirt);
  }
  // Something stands or hangs at every stretch of the three visible walls.
  auto along_wall = [&](const Transform& at, float length) {
    float x = -length / 2 + dice.real(0.1, 0.6);
    while (x < length / 2 - 0.3f) {
      float span = dice.real(0.5, 1.8);
      if (x + span > length / 2) break;
      Transform here = at * Transform::move({x + span / 2, 0, 0});
      Transform off = here * Transform::move({0, 0, -0.35f});
      switch (dice.weighted(
          std::initializer_list<double>{2.2, 1.2, 1, 1, 0.8, 0.8, 0.7, 0.6, 0.5, 1.2})) {
        case 0:
          b.shelf(dice, here * Transform::move({0, 0, -0.25f}), span, dice.real(0.8, 2.1));
          break;
        case 1: {
          float top = b.table(dice, off * Transform::move({0, 0, -0.05f}), span, 0.55f,
                              dice.real(0.5, 0.95));
          for (int i = b.amount(dice, 2 * span + 1); i > 0; --i)
            b.small_thing(
                dice,
                off * Transform::move({dice.real(-0.4, 0.4) * span, top, dice.real(-0.2, 0.1)}),
                dice.real(0.12, 0.4));
          if (dice.chance(0.3)) b.screen(dice, off * Transform::move({0, top, 0}));
          break;
        }
        case 2:
          b.sofa(dice, off * Transform::move({0, 0, -0.15f}));
          break;
        case 3:
          b.chair(dice, off * Transform::turn_y(dice.real(-0.6, 0.6)));
          break;
        case 4:
          b.plant(dice, off, dice.real(0.5, 1.7));
          break;
        case 5:
          b.floor_lamp(dice, off);
          break;
        case 6:
          for (int i = dice.count(1, 3), y = 0; y < i; ++y)
            b.carton(dice,
                     off *
                         Transform::move({dice.real(-0.1, 0.1), 0.4f * static_cast<float>(y), 0}) *
                         Transform::turn_y(dice.real(-0.3, 0.3)),
                     dice.real(0.35, 0.6));
          break;
        case 7:
          b.ladder(dice, here * Transform::move({0, 0, -0.45f}), dice.real(1.2, 2.2));
          break;
        case 8:
          b.bicycle(dice, off * Transform::turn_y(0.5f * kPi));
          break;
        default:
          break;
      }
      if (dice.chance(0.5)) {
        float height = dice.real(0.25, 0.8);
        b.picture(dice, here * Transform::move({0, dice.real(1.3, 1.9), -0.01f}),
                  height * dice.real(0.6, 1.5), height);
      } else if (dice.chance(0.25)) {
        // A window, or a curtain.
        if (dice.chance(0.5)) {
          Material sky = b.make.lamp(dice);
          sky.emission = dice.real(0.5, 2.5);
          b.part(rectangle(span * 0.8f, 1.1f), here, {0, 1.5f, -0.006f}, std::move(sky));
          int frame = scene.add_material(b.make.paint(dice));
          for (float s : {-1.f, 0.f, 1.f})
            b.part(box({0.05f, 1.15f, 0.06f}), here, {s * span * 0.4f, 1.5f, -0.02f}, frame);
          for (float s : {-1.f, 1.f})
            b.part(box({span * 0.85f, 0.06f, 0.08f}), here, {0, 1.5f + s * 0.55f, -0.02f}, frame);
        } else {
          scene.add(folded_sheet(dice, span, h * 0.85f, 0.08f),
                    here * Transform::move({0, h * 0.5f, -0.12f}), b.make.cloth(dice, 1));
        }
      }
      x += span + dice.real(0, 0.25);
    }
  };
  along_wall(Transform::move({0, 0, d}), w);
  along_wall(Transform::move({-w / 2, 0, d / 2}) * Transform::turn_y(-0.5f * kPi), d);
  along_wall(Transform::move({w / 2, 0, d / 2}) * Transform::turn_y(0.5f * kPi), d);
  if (dice.chance(0.4))
    scene.add(height_field(w * 0.6f, d * 0.4f, 2, 2, [](float, float) { return 0.008f; }),
              Transform::move({0, 0, d / 2}), b.make.cloth(dice, 1.5f));
  for (int i = b.amount(dice, 2 + 0.22 * w * d); i > 0; --i) {
    Transform at = Transform::move({dice.real(-0.4, 0.4) * w, 0, dice.real(0.3, 0.85) * d}) *
                   Transform::turn_y(dice.real(0, 2 * kPi));
    switch (dice.count(0, 6)) {
      case 0:
        b.chair(dice, at);
        break;
      case 1: {
        float tw = dice.real(0.6, 1.8), td = dice.real(0.5, 0.9),
              top = b.table(dice, at, tw, td, dice.real(0.4, 0.8));
        for (int k = b.amount(dice, 5); k > 0; --k)
          b.small_thing(
              dice,
              at * Transform::move({dice.real(-0.4, 0.4) * tw, top, dice.real(-0.4, 0.4) * td}),
              dice.real(0.1, 0.4));
        for (int k = dice.count(0, 2); k > 0; --k)
          b.chair(
              dice,
              at * Transform::move({dice.real(-0.5, 0.5) * tw, 0, dice.sign() * (td / 2 + 0.3f)}) *
                  Transform::turn_y(dice.real(0, 6)));
        break;
      }
      case 2:
        b.carton(dice, at, dice.real(0.3, 0.7));
        break;
      case 3:
        b.plant(dice, at, dice.real(0.4, 1.4));
        break;
      case 4:
        b.small_thing(dice, at, dice.real(0.2, 0.6));
        break;
      case 5:
        b.crate(dice, at, dice.real(0.3, 0.6));
        break;
      default:
        b.person(dice, at, dice.real(1.5, 1.9));
        break;
    }
  }
  for (int i = b.thin_amount(dice, 0.5); i > 0; --i) {  // cables and pipes
    float x = dice.real(-0.4, 0.4) * w;
    b.wires(dice, {x, h - dice.real(0.1, 0.8), dice.real(0.5, 0.9) * d},
            {x + dice.real(-2, 2), h - dice.real(0.1, 0.8), dice.real(0.5, 0.99) * d},
            dice.count(1, 3));
  }
  lamps(b, dice, {0, h * 0.45f, d / 2}, std::min({w, d, 2 * h}) * 0.42f);
  for (auto& light : scene.lights) light.place.y = std::min(light.place.y, h - 0.1f);
  camera.pose = look({dice.real(-0.32, 0.32) * w, dice.real(0.7, 1.75), dice.real(0.08, 0.3) * d},
                     dice.normal(0.35), dice.real(-0.35, 0.1), dice.normal(0.03));
}

void build_still(Builder& b, Dice& dice, StereoCamera& camera) {
  Scene& scene = b.scene;
  // Everything within a box of a metre or two; the camera looks slightly down on it.
  float far = dice.real(0.5, 1.3), wide = dice.real(1.4, 2.6);
  Mesh ground;
  if (dice.chance(0.35)) {
    std::uint32_t seed = dice.bits();
    float height = dice.real(0.01, 0.06), folds = dice.real(2, 8);
    ground = height_field(3 * wide, 5, 90, 90, [&](float x, float z) {
      return height * fractal2(x * folds, z * folds * 0.5f, 3, 0.5f, 0, seed) - height;
    });
    scene.add(ground, Transform::move({0, 0, 0.3f}), b.make.cloth(dice, 0.8f));
  } else {
    b.part(rectangle(6 * wide, 8), Transform::move({0, 0, 0.3f}) * Transform::turn_x(0.5f * kPi),
           {}, dice.chance(0.5) ? b.make.wood(dice) : b.make.any(dice, 0.8f));
  }
  // Background: wall, cloth, or boards.
  Transform back = Transform::move({0, 1, far}) * Transform::turn_y(dice.normal(0.15));
  int style = dice.count(0, 3);
  if (style == 0)
    scene.add(folded_sheet(dice, 4 * wide, 4, dice.real(0.02, 0.12)), back,
              b.make.cloth(dice, 0.7f));
  else if (style == 1)
    scene.add(rectangle(8 * wide, 8), back, b.make.picture(dice, dice.real(0.7, 1.8)));
  else if (style == 2)
    scene.add(rectangle(8 * wide, 8), back, b.make.wall(dice));
  else
    scene.add(rectangle(8 * wide, 8), back, b.make.any(dice, 0.8f));
  for (int i = dice.count(0, 3); i > 0; --i) {  // posters and boards that lean on it
    float s = dice.real(0.3, 0.9);
    b.picture(
        dice,
        Transform::move({dice.real(-0.6, 0.6), dice.real(0.2, 0.8), far - dice.real(0.03, 0.2)}) *
            Transform::turn_x(dice.real(0, 0.25)) * Transform::turn_z(dice.normal(0.1)),
        s, s * dice.real(0.6, 1.4));
  }
  if (dice.chance(0.25))
    b.lattice(dice,
              Transform::move({dice.real(-0.5, 0.5), 0.4f, far - dice.real(0.05, 0.3)}) *
                  Transform::turn_y(dice.real(-0.4, 0.4)),
              dice.real(0.5, 1.2), dice.real(0.5, 1));
  for (int i = dice.count(1, 6); i > 0; --i) {  // boxes that others stand on, higher at the back
    float s = dice.real(0.2, 0.5), z = dice.real(0, 0.9) * far;
    Transform at =
        Transform::move({dice.real(-0.7, 0.7), 0, z}) * Transform::turn_y(dice.real(-0.5, 0.5));
    b.part(box({s, s * 0.6f, s * 0.7f}), at, {0, s * 0.3f, 0}, b.make.any(dice, s));
    for (int k = dice.count(0, 2); k > 0; --k)
      b.small_thing(dice, at * Transform::move({dice.real(-0.3, 0.3) * s, s * 0.6f, 0}),
                    dice.real(0.12, 0.35));
  }
  for (int i = b.amount(dice, dice.real(10, 34)); i > 0; --i) {
    float z = dice.real(-0.5, 0.92) * far;
    Transform at = Transform::move({dice.real(-0.65, 0.65) * (1 + 0.3f * z), 0, z});
    float size = dice.log_real(0.08, 0.45);
    switch (dice.count(0, 9)) {
      case 0:
        b.book_row(dice, at * Transform::turn_y(dice.normal(0.3)), dice.real(0.15, 0.5),
                   dice.real(0.18, 0.32));
        break;
      case 1:
        b.thing(dice, at * Transform::move({0, size * 0.5f, 0}) * dice.turn(), size);
        break;
      case 2: {  // an open or standing book, a card
        Transform lean =
            at * Transform::turn_y(dice.real(-0.7, 0.7)) * Transform::turn_x(dice.real(-0.1, 0.4));
        b.part(box({size, size * 1.2f, 0.01f}), lean, {0, size * 0.6f, 0},
               b.make.paper(dice, size));
        break;
      }
      case 3:
        b.part(torus(size * 0.4f, size * dice.real(0.03, 0.1), 36),
               at * Transform::move({0, size * 0.45f, 0}) *
                   Transform::turn_z(dice.real(-0.4, 0.4)) *
                   Transform::turn_x(0.5f * kPi + dice.normal(0.3)),
               {}, b.make.any(dice, size));
        break;
      case 4: {  // pencils and sticks
        int m = scene.add_material(b.make.any(dice, 0.1f));
        for (int k = b.thin_amount(dice, 4); k > 0; --k)
          b.bar(at, {dice.real(-0.05, 0.05), 0, dice.real(-0.05, 0.05)},
                {dice.real(-0.15, 0.15), dice.real(0.2, 0.5), dice.real(-0.1, 0.1)},
                dice.real(0.003, 0.01), m);
        break;
      }
      default:
        b.small_thing(dice, at, size);
        break;
    }
  }
  lamps(b, dice, {0, 0.3f, 0}, dice.real(1.2, 2.5));
  float away = dice.real(1, 2.2), height = dice.real(0.15, 0.7);
  Vec3 eye{dice.real(-0.25, 0.25), height, -away};
  float pitch = std::atan2(dice.real(0.1, 0.4) - height, away + 0.3f * far);
  camera.pose = look(eye, std::atan2(-eye.x, away) + dice.normal(0.06), pitch, dice.normal(0.02));
}

}  // namespace nmrf::synth
