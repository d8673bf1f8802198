// Streets and parks.
#include "synth/noise.h"
#include "synth/scenes.h"

namespace nmrf::synth {
namespace {

// A rectangle on the ground from (x0, z0) to (x1, z1) at height y.
void ground(Scene& scene, float x0, float x1, float z0, float z1, float y, int material) {
  Mesh mesh;
  // In pieces: intersections lose digits on very long triangles.
  int pieces = std::max(1, static_cast<int>((z1 - z0) / 25));
  for (int i = 0; i < pieces; ++i) {
    float a = mix(z0, z1, static_cast<float>(i) / static_cast<float>(pieces)),
          c = mix(z0, z1, static_cast<float>(i + 1) / static_cast<float>(pieces));
    auto base = static_cast<std::uint32_t>(mesh.positions.size());
    for (auto [x, z] : {std::pair{x0, a}, {x1, a}, {x1, c}, {x0, c}})
      mesh.vertex({x, y, z}, {0, 1, 0}, {x, z, 0});
    mesh.triangles.push_back({base, base + 1, base + 2});
    mesh.triangles.push_back({base, base + 2, base + 3});
  }
  scene.add(mesh, {}, material);
}

void markings(Builder& b, Dice& dice, float half, float end) {
  Material white = b.make.paint(dice);
  white.texture.colors[0] = Vec3{0.7f, 0.7f, 0.66f} * dice.real(0.5, 1.1);
  white.texture.dirt = dice.real(0, 0.6), white.texture.dirt_frequency = 4;
  int m = b.scene.add_material(std::move(white));
  Mesh lines;
  auto stripe = [&](float x, float w, float z0, float z1) {
    auto base = static_cast<std::uint32_t>(lines.positions.size());
    for (auto [px, pz] :
         {std::pair{x - w / 2, z0}, {x + w / 2, z0}, {x + w / 2, z1}, {x - w / 2, z1}})
      lines.vertex({px, 0.004f, pz}, {0, 1, 0}, {px, pz, 0});
    lines.triangles.push_back({base, base + 1, base + 2});
    lines.triangles.push_back({base, base + 2, base + 3});
  };
  float dash = dice.real(1.5, 4), gap = dash * dice.real(0.7, 2), w = dice.real(0.1, 0.2);
  for (float z = -4; z < end; z += dash + gap) stripe(0, w, z, z + dash);
  if (dice.chance(0.5))
    for (float s : {-1.f, 1.f}) stripe(s * (half - 0.35f), w, -4, end);
  if (dice.chance(0.4)) {  // crossing
    float z = dice.real(6, 25);
    for (float x = -half + 0.4f; x < half - 0.3f; x += 1) stripe(x, 0.5f, z, z + 3);
  }
  b.scene.add(lines, {}, m);
}

}  // namespace

void add_fences(Builder& b, Dice& dice, float walk,
                const std::function<Transform(float off, float z)>& beside) {
  if (b.options.fences <= 0) return;
  for (int i = static_cast<int>(b.options.fences + dice.uniform()); i > 0; --i)
    b.fence(dice,
            beside(dice.real(0, walk), dice.log_real(4, 40)) *
                Transform::turn_y(dice.chance(0.8) ? dice.normal(0.1) : 1.57f),
            dice.real(3, 12), dice.real(0.8, 2));
}

void build_street(Builder& b, Dice& dice, StereoCamera& camera) {
  Scene& scene = b.scene;
  daylight(b, dice);
  float half = dice.real(2.8, 7.5), kerb = dice.chance(0.8) ? dice.real(0.06, 0.18) : 0,
        walk = dice.real(1.2, 5), end = dice.real(60, 160);
  int road = scene.add_material(b.make.road(dice)),
      pavement = scene.add_material(b.make.pavement(dice));
  ground(scene, -half, half, -6, end, 0, road);
  ground(scene, -300, 300, end, 500, -0.03f, scene.add_material(b.make.soil(dice)));
  bool rural = dice.chance(0.3);
  int verge = rural ? scene.add_material(b.make.soil(dice)) : pavement;
  for (float s : {-1.f, 1.f}) {
    float x0 = s * half, x1 = s * (half + walk);
    ground(scene, std::min(x0, x1), std::max(x0, x1), -6, end, kerb,
           dice.chance(0.8) ? verge : scene.add_material(b.make.soil(dice)));
    float x2 = s * 90;
    ground(scene, std::min(x1, x2), std::max(x1, x2), -6, end, kerb - 0.02f,
           scene.add_material(b.make.soil(dice)));
    if (kerb > 0)
      b.part(box({0.15f, kerb + 0.01f, end + 6}), {}, {x0, kerb / 2, end / 2 - 3},
             b.make.rock(dice));
  }
  if (dice.chance(0.85)) markings(b, dice, half, end);
  for (int i = dice.count(0, 4); i > 0; --i)  // manholes and patches
    b.part(cylinder(dice.real(0.25, 0.45), 0.006f, 20), {},
           {dice.real(-0.8, 0.8) * half, 0, dice.real(3, 25)}, b.make.road(dice));

  for (float s : {-1.f, 1.f}) {
    // Facing the road: -z of the thing turns to the middle.
    auto beside = [&](float off, float z) {
      return Transform::move({s * (half + off), kerb, z}) * Transform::turn_y(s * 0.5f * kPi);
    };
    float built = rural ? 0.25f : 0.8f;
    float z = -4 + dice.real(0, 6);
    float setback = walk + (dice.chance(0.6) ? 0 : dice.real(1, 8));
    while (z < end) {
      float span = dice.real(6, 22);
      if (dice.chance(built)) {
        b.building(dice, beside(setback + dice.real(0, 0.6), z + span / 2), span, dice.real(4, 16),
                   dice.real(7, 12));
      } else {
        switch (dice.count(0, 3)) {
          case 0:
            b.hedge(dice, beside(walk + dice.real(0, 1), z + span / 2), span, dice.real(0.8, 3));
            break;
          case 1:
            b.fence(dice, beside(walk, z + span / 2), std::min(span, 14.f), dice.real(0.8, 2));
            break;
          case 2:
            for (int i = b.amount(dice, 3); i > 0; --i)
              b.bush(dice, beside(walk + dice.real(0, 4), z + dice.real(0, span)),
                     dice.real(0.8, 3));
            break;
          default:
            b.part(box({span, dice.real(0.8, 2.5), 0.3f}), beside(walk, z + span / 2),
                   {0, 0.8f, 0.15f}, b.make.facade(dice));
            break;
        }
        for (int i = dice.count(0, 2); i > 0; --i)
          b.tree(dice, beside(walk + dice.real(2, 10), z + dice.real(0, span)), dice.real(4, 12));
      }
      z += span + (dice.chance(0.25) ? dice.real(1, 8) : 0);
    }
    // Parked cars, trees, posts.
    if (dice.chance(0.75)) {
      float chance = dice.real(0.3, 0.95), first = dice.real(3, 14);
      bool diagonal = dice.chance(0.15);
      for (float at = first; at < 55; at += diagonal ? 3.f : dice.real(5.2, 8)) {
        if (!dice.chance(chance)) continue;
        Transform place = Transform::move({s * (half - 1.1f), 0, at}) *
                          Transform::turn_y((dice.chance(0.85) ? (s > 0 ? kPi : 0) : 0) +
                                            (diagonal ? s * 0.8f : dice.normal(0.03)));
        if (dice.chance(0.85))
          b.car(dice, place);
        else
          b.van(dice, place);
      }
    }
    if (dice.chance(0.6)) {
      float step = dice.real(6, 14);
      for (float at = dice.real(3, 12); at < 55; at += step)
        if (dice.chance(0.8))
          b.tree(dice, beside(dice.real(0.5, std::max(0.6f, walk - 0.4f)), at), dice.real(3.5, 9));
    }
    for (int i = b.thin_amount(dice, 5); i > 0; --i) {
      Transform at = beside(dice.real(0.2, walk), dice.log_real(3.5, 45));
      Transform facing = Transform::move(at.shift) * Transform::turn_y(dice.normal(0.3));
      switch (dice.count(0, 6)) {
        case 0:
          b.lamp_post(dice, at);
          break;
        case 1:
        case 2:
          b.sign(dice, facing);
          break;
        case 3:
          b.traffic_light(dice, facing);
          break;
        case 4: {
          float step = dice.real(1, 2.5);
          for (int k = dice.count(1, 6); k > 0; --k)
            b.bollard(dice, at * Transform::move({step * static_cast<float>(k), 0, 0}));
          break;
        }
        case 5:
          b.fence(dice, at * Transform::turn_y(dice.chance(0.8) ? 0 : 1.57f), dice.real(2, 7),
                  dice.real(0.7, 1.3));
          break;
        default:
          b.bicycle(dice, facing * Transform::turn_y(dice.real(0, 6)));
          break;
      }
    }
    for (int i = b.amount(dice, 2.5); i > 0; --i) {
      Transform at =
          beside(dice.real(0.3, walk), dice.log_real(3.5, 40)) * Transform::turn_y(dice.real(0, 6));
      switch (dice.count(0, 4)) {
        case 0:
        case 1:
          b.person(dice, at, dice.real(1.5, 1.9));
          break;
        case 2:
          b.bin(dice, at);
          break;
        case 3:
          b.bench(dice, beside(dice.real(0.5, walk), dice.real(5, 30)));
          break;
        default:
          b.bush(dice, at, dice.real(0.5, 1.5));
          break;
      }
    }
    add_fences(b, dice, walk, beside);
    if (rural)
      for (int i = b.thin_amount(dice, 8); i > 0; --i)
        b.tuft(dice, beside(dice.real(0.1, 4), dice.log_real(2.5, 15)), dice.real(0.2, 0.7));
  }
  for (int i = b.amount(dice, 1.6); i > 0; --i) {  // traffic
    Transform at =
        Transform::move({dice.real(-0.6, 0.6) * half, 0, dice.log_real(7, 60)}) *
        Transform::turn_y(dice.chance(0.9) ? (dice.chance(0.5) ? kPi : 0) + dice.normal(0.1)
                                           : dice.real(0, 6));
    switch (dice.weighted(std::initializer_list<double>{5, 1.5, 1, 1})) {
      case 0:
        b.car(dice, at);
        break;
      case 1:
        b.van(dice, at);
        break;
      case 2:
        b.person(dice, at, dice.real(1.5, 1.9));
        break;
      default:
        b.bicycle(dice, at);
        b.person(dice, at * Transform::move({0, 0.25f, 0}), dice.real(1.4, 1.7));
        break;
    }
  }
  for (int i = b.thin_amount(dice, 0.8); i > 0; --i) {
    float y = dice.real(4.5, 8), z = dice.log_real(5, 40);
    if (dice.chance(0.5))
      b.wires(dice, {-half - walk, y, z}, {half + walk, y + dice.real(-1, 1), z + dice.real(-4, 4)},
              dice.count(1, 3));
    else
      b.wires(dice, {dice.sign() * half, y, 1}, {dice.sign() * half, y, 45}, dice.count(1, 4));
  }
  // The end: a building across, woods, or open land.
  int finish = dice.count(0, 2);
  if (finish == 0)
    b.building(dice, Transform::move({dice.real(-10, 10), 0, end + 2}), dice.real(25, 60),
               dice.real(6, 18), 10);
  else if (finish == 1)
    for (int i = dice.count(3, 7); i > 0; --i)
      b.tree(dice, Transform::move({dice.real(-30, 30), 0, end + dice.real(0, 15)}),
             dice.real(8, 15));
  if (dice.chance(0.4)) {
    std::uint32_t seed = dice.bits();
    float peak = dice.real(10, 50);
    scene.add(
        height_field(900, 300, 60, 16,
                     [&](float x, float z) {
                       return peak * (0.3f + fractal2(x * 0.008f, z * 0.008f, 4, 0.5f, 0, seed)) *
                                  (0.5f + z / 300) -
                              4;
                     }),
        Transform::move({0, 0, end + 250}), b.make.soil(dice));
  }
  bool walker = dice.chance(0.25);
  float x = walker ? dice.sign() * (half + walk * 0.5f) : dice.real(-0.55, 0.55) * half;
  float yaw = dice.chance(0.75) ? dice.normal(0.12) : dice.real(-1.2, 1.2);
  camera.pose = look({x, dice.real(1.1, walker ? 1.9 : 2.4), dice.real(-2, 2)}, yaw,
                     dice.normal(0.035), dice.normal(0.015));
}

void build_park(Builder& b, Dice& dice, StereoCamera& camera) {
  Scene& scene = b.scene;
  daylight(b, dice);
  std::uint32_t seed = dice.bits();
  float waves = dice.log_real(0.03, 0.2),
        peak = dice.chance(0.5) ? dice.log_real(0.1, 1) : dice.log_real(0.5, 3);
  auto terrain = [&](float x, float z) {
    float rough = 0.03f * fractal2(x * 1.5f, z * 1.5f, 3, 0.5f, 0, seed + 9);
    return peak * fractal2(x * waves, z * waves, 4, 0.45f, 0, seed) + rough;
  };
  float at_camera = terrain(0, 0);
  auto height = [&](float x, float z) { return terrain(x, z) - at_camera; };
  int soil = scene.add_material(b.make.soil(dice));
  // Fine near the camera, coarse far away; the coarse one lies a little lower.
  scene.add(height_field(40, 44, 110, 110, [&](float x, float z) { return height(x, z + 18); }),
            Transform::move({0, 0, 18}), soil);
  scene.add(height_field(300, 300, 60, 60,
                         [&](float x, float z) {
                           float world_z = z + 120;
                           bool covered = std::abs(x) < 19 && world_z < 39;
                           return height(x, world_z) - (covered ? 1.f + peak : 0.06f);
                         }),
            Transform::move({0, 0, 120}),
            dice.chance(0.6) ? soil : scene.add_material(b.make.soil(dice)));
  auto spot = [&](float near, float far) {
    float z = dice.log_real(near, far), x = dice.real(-0.9, 0.9) * (z + 1.5f);
    return Transform::move({x, height(x, z) - 0.02f, z}) * Transform::turn_y(dice.real(0, 2 * kPi));
  };
  auto front = [&](float near, float far) {
    Transform t = spot(near, far);
    return Transform::move(t.shift) * Transform::turn_y(dice.normal(0.5));
  };
  bool forest = dice.chance(0.3);
  for (int i = b.amount(dice, forest ? 16 : 5); i > 0; --i)
    b.tree(dice, spot(4, 60), dice.real(3.5, 14));
  for (int i = b.amount(dice, 4); i > 0; --i) b.bush(dice, spot(3, 30), dice.real(0.5, 2.5));
  for (int i = b.amount(dice, 7); i > 0; --i) b.rock(dice, spot(1.8, 25), dice.log_real(0.15, 2));
  for (int i = b.thin_amount(dice, 12); i > 0; --i)
    b.tuft(dice, spot(1.5, 14), dice.real(0.15, 0.8));
  for (int i = b.thin_amount(dice, 3); i > 0; --i) {
    switch (dice.count(0, 5)) {
      case 0:
        b.lamp_post(dice, spot(3, 30));
        break;
      case 1:
        b.sign(dice, front(3, 20));
        break;
      case 2:
        b.frame_work(dice, spot(4, 20), dice.real(1.2, 3));
        break;
      case 3:
        b.fence(dice, front(4, 25), dice.real(3, 14), dice.real(0.7, 1.8));
        break;
      case 4: {  // leaning logs
        int wood = scene.add_material(b.make.bark(dice));
        Transform at = spot(2.5, 12);
        for (int k = dice.count(2, 6); k > 0; --k) {
          Vec3 foot{dice.real(-1, 1), -0.1f, dice.real(-1, 1)};
          b.bar(at, foot,
                foot + Vec3{dice.real(-0.7, 0.7), dice.real(0.6, 3), dice.real(-0.7, 0.7)},
                dice.real(0.04, 0.16), wood, 12);
        }
        break;
      }
      default:
        for (int k = dice.count(2, 5); k > 0; --k) b.bollard(dice, spot(2.5, 15));
        break;
    }
  }
  for (int i = b.amount(dice, 2); i > 0; --i) {
    switch (dice.count(0, 4)) {
      case 0:
        b.person(dice, spot(3, 20), dice.real(1.2, 1.9));
        break;
      case 1:
        b.bench(dice, front(3, 15));
        break;
      case 2:
        b.bicycle(dice, spot(3, 12));
        break;
      case 3:
        b.solid(dice, spot(3, 15) * Transform::move({0, 0.5f, 0}), dice.real(0.5, 2));
        break;
      default:
        b.crate(dice, spot(2.5, 10), dice.real(0.4, 1));
        break;
    }
  }
  if (dice.chance(0.45))
    for (int i = dice.count(1, 3); i > 0; --i) {
      Transform t = spot(14, 50);
      b.building(
          dice,
          Transform::move(t.shift - Vec3{0, 0.6f, 0}) * Transform::turn_y(dice.real(-0.9, 0.9)),
          dice.real(8, 26), dice.real(4, 14), 9);
    }
  if (dice.chance(0.3)) b.hedge(dice, front(8, 25), dice.real(8, 20), dice.real(0.8, 2.5));
  // A shallow tree line or hills behind.
  if (dice.chance(0.6)) {
    float peak_far = dice.real(4, 30);
    Material woods = b.make.foliage(dice);
    woods.texture.pattern = Pattern::kLeaves, woods.texture.frequency = 0.6f;
    scene.add(height_field(600, 60, 120, 8,
                           [&](float x, float z) {
                             return peak_far *
                                        (0.4f + 0.6f * fractal2(x * 0.03f, z * 0.03f, 5, 0.6f, 0,
                                                                seed + 3)) *
                                        (0.2f + (z + 30) / 60) -
                                    3;
                           }),
              Transform::move({0, 0, 180}), std::move(woods));
  }
  camera.pose = look({0, dice.real(0.6, 1.9), 0}, dice.normal(0.2), dice.normal(0.07) - 0.04f,
                     dice.normal(0.03));
}

}  // namespace nmrf::synth
