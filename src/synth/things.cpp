// Random shapes, and the choice of anything for scenes of flying objects.
#include "synth/builder.h"

namespace nmrf::synth {

void Builder::solid(Dice& dice, const Transform& at, float size) {
  int material = scene.add_material(make.any(dice, size));
  float h = size / 2;
  switch (dice.weighted(std::initializer_list<double>{2, 1.5, 3, 1.5, 1, 1, 2.5, 2, 1, 1, 1})) {
    case 0:
      scene.add(
          box({size * dice.real(0.25, 1), size * dice.real(0.25, 1), size * dice.real(0.1, 1)}), at,
          material);
      break;
    case 1:
      scene.add(ellipsoid(Vec3{dice.real(0.5, 1), dice.real(0.5, 1), dice.real(0.5, 1)} * h, 28),
                at, material);
      break;
    case 2:
      scene.add(superquadric(Vec3{dice.real(0.4, 1), dice.real(0.4, 1), dice.real(0.4, 1)} * h,
                             dice.log_real(0.15, 2.6), dice.log_real(0.15, 2.6), 36),
                at, material);
      break;
    case 3:
      scene.add(torus(h * dice.real(0.55, 0.8), h * dice.real(0.05, 0.3), 36), at, material);
      break;
    case 4:
      scene.add(cylinder(h * dice.real(0.08, 0.7), size, 26), at * Transform::move({0, -h, 0}),
                material);
      break;
    case 5:
      scene.add(cone(h * dice.real(0.3, 0.9), h * dice.real(0, 0.4), size, 26),
                at * Transform::move({0, -h, 0}), material);
      break;
    case 6: {
      auto outline = random_outline(dice);
      for (auto& p : outline) p = p * size;
      scene.add(extrusion(outline, size * dice.log_real(0.02, 0.8)), at, material);
      break;
    }
    case 7:
      scene.add(blob(dice, Vec3{dice.real(0.5, 1), dice.real(0.5, 1), dice.real(0.5, 1)} * h,
                     dice.real(0.15, 0.9), 36),
                at, material);
      break;
    case 8:
      scene.add(folded_sheet(dice, size, size * dice.real(0.5, 1), size * dice.real(0.03, 0.2)), at,
                material);
      break;
    case 9: {  // a bent tube
      std::vector<Vec3> path;
      Vec3 p = dice.unit() * (-0.5f * h), d = dice.unit();
      for (int i = 0; i < 18; ++i) {
        path.push_back(p);
        d = normalize(d + dice.unit() * 0.45f - p * (0.5f / size));
        p = p + d * (0.14f * size);
      }
      float r = h * dice.log_real(0.02, 0.2);
      scene.add(tube(path, r, r * dice.real(0.3, 1), 10), at, material);
      break;
    }
    default: {  // a turned piece: goblet, chessman, spindle
      std::vector<Vec2> profile{{0, -h}};
      int rings = dice.count(5, 12);
      for (int i = 0; i <= rings; ++i)
        profile.push_back({h * dice.real(0.1, 0.6),
                           -h + size * static_cast<float>(i) / static_cast<float>(rings)});
      profile.push_back({0, h});
      scene.add(lathe(profile, 26, dice.chance(0.5)), at, material);
    }
  }
}

void Builder::lattice(Dice& dice, const Transform& at, float width, float height) {
  int m = scene.add_material(dice.chance(0.5) ? make.any(dice, 0.3f * height) : make.wood(dice));
  Mesh mesh;
  float bar_width = height * dice.log_real(0.005, 0.04), step = bar_width * dice.real(2.5, 8);
  float angle = dice.chance(0.5) ? 0 : kPi / 4, reach = std::max(width, height);
  auto add = [&](float turn, float z) {
    for (float o = -reach; o <= reach; o += step) {
      // The bar's line, cut to the rectangle.
      Vec2 d{std::cos(turn), std::sin(turn)}, n{-d.y, d.x}, c = n * o;
      float low = -2 * reach, high = 2 * reach;
      for (auto [p, v, half] : {std::array{c.x, d.x, width / 2}, {c.y, d.y, height / 2}}) {
        if (std::abs(v) < 1e-6f) {
          if (std::abs(p) > half) low = 1, high = 0;
          continue;
        }
        float a = (-half - p) / v, b = (half - p) / v;
        low = std::max(low, std::min(a, b)), high = std::min(high, std::max(a, b));
      }
      if (high - low < bar_width) continue;
      Vec2 mid = c + d * (0.5f * (low + high));
      mesh.append(box({high - low, bar_width, bar_width * 0.4f}),
                  Transform::move({mid.x, mid.y, z}) * Transform::turn_z(turn));
    }
  };
  add(angle, 0);
  if (dice.chance(0.75)) add(angle + 0.5f * kPi, bar_width * 0.4f);
  scene.add(mesh, at, m);
}

void Builder::thing(Dice& dice, const Transform& at, float size) {
  // Scaled things stand on their origin: move them down by half of their height.
  auto standing = [&](float natural) {
    return at * Transform::scaled(size / natural) * Transform::move({0, -natural * 0.4f, 0});
  };
  switch (dice.weighted(std::initializer_list<double>{11, 0.8, 0.5, 0.5, 1, 1, 0.6, 0.6, 0.5, 0.6,
                                                      0.4, 0.6, 0.5, 0.5, 0.6 * options.thin,
                                                      0.5 * options.thin})) {
    case 0:
      solid(dice, at, size);
      break;
    case 1:
      chair(dice, standing(1));
      break;
    case 2:
      table(dice, standing(1), 1, 0.7f, 0.75f);
      break;
    case 3:
      sofa(dice, standing(1.4f));
      break;
    case 4:
      vessel(dice, standing(1), 1);
      break;
    case 5:
      figure(dice, standing(1), 1);
      break;
    case 6:
      plant(dice, standing(1), 1);
      break;
    case 7:
      car(dice, standing(3));
      break;
    case 8:
      crate(dice, standing(1), 1);
      break;
    case 9:
      bush(dice, standing(1), 1);
      break;
    case 10:
      bicycle(dice, standing(1.2f));
      break;
    case 11:
      person(dice, standing(1.7f), 1.7f);
      break;
    case 12:
      carton(dice, standing(1), 1);
      break;
    case 13:
      book_pile(dice, standing(0.3f));
      break;
    case 14:
      lattice(dice, at, size, size * dice.real(0.5, 1));
      break;
    default:
      frame_work(dice, standing(1.2f), 1);
      break;
  }
}

}  // namespace nmrf::synth
