// Scenes without gravity: flying objects and slanted layers.
#include <algorithm>

#include "synth/scenes.h"

namespace nmrf::synth {
namespace {

// A place seen by the camera (or a little outside of its view) at depth z.
Vec3 seen_place(Dice& dice, const StereoCamera& camera, float z, float margin) {
  float x = dice.real(-margin, 1 + margin) * static_cast<float>(camera.width);
  float y = dice.real(-margin, 1 + margin) * static_cast<float>(camera.height);
  return camera.ray(x, y) * z;
}

// A depth such that 1 / depth, and so the disparity, is uniform between the two.
float draw_depth(Dice& dice, float near, float far) {
  return 1 / mix(1 / near, 1 / far, dice.real(0, 1));
}

// Size in metres of `pixels` at depth z.
float metres(const StereoCamera& camera, float pixels, float z) {
  return pixels * z / camera.focal;
}

// A slanted plane that fills the view around depth z.
void backdrop(Builder& b, Dice& dice, const StereoCamera& camera, float z, bool folds) {
  float span = metres(camera, 3.2f * static_cast<float>(std::max(camera.width, camera.height)), z);
  Vec3 center = camera.ray(0.5f * static_cast<float>(camera.width),
                           0.5f * static_cast<float>(camera.height)) *
                z;
  Transform at = Transform::move(center) * Transform::turn_y(dice.normal(0.25)) *
                 Transform::turn_x(dice.normal(0.2)) *
                 Transform::turn_z(dice.chance(0.5) ? 0 : dice.real(0, 6.28));
  float height = metres(camera, static_cast<float>(camera.height) * dice.real(0.8, 1.6), z);
  Material m = dice.chance(0.6) ? b.make.picture(dice, height) : b.make.any(dice, 0.5f * height);
  m.mirror = m.glass = 0;
  if (folds)
    b.scene.add(folded_sheet(dice, span, span, span * dice.real(0.005, 0.04)), at, std::move(m));
  else
    b.scene.add(rectangle(span, span), at, std::move(m));
}

// How far the camera sees through the pixel (x, y), metres.
float depth_at(const Caster& caster, const StereoCamera& camera, float x, float y) {
  Packet packet;
  for (int i = 0; i < kPacket; ++i) packet.off(i);
  packet.set(0, camera.center(false), camera.ray(x, y), 0.05f, 1e9f);
  caster.nearest(packet, true);
  return packet.hit(0) ? packet.distance(0) : 1e9f;
}

// Near objects cut by the left or right image border: what only one camera sees is too near
// for the other.
void edge_things(Builder& b, Dice& dice, const StereoCamera& camera, float near) {
  if (!dice.chance(b.options.border)) return;
  auto width = static_cast<float>(camera.width), height = static_cast<float>(camera.height);
  float window = std::sqrt(width * height);
  for (int i = dice.count(1, 3); i > 0; --i) {
    float z = near * dice.real(0.75, 1.3);
    float size = std::min(metres(camera, window * dice.log_real(0.08, 0.5), z), 0.6f * z);
    float x = dice.real(-0.06, 0.1);
    if (dice.chance(0.5)) x = 1 - x;
    Transform at =
        Transform::move(camera.ray(x * width, dice.real(0, 1) * height) * (z + 0.5f * size));
    if (dice.chance(0.25))
      b.lattice(dice,
                at * Transform::turn_y(dice.normal(0.4)) * Transform::turn_z(dice.real(0, 6.28)),
                size, size * dice.real(0.5, 1));
    else
      b.thing(dice, at * dice.turn(), size);
  }
}

}  // namespace

void build_flying(Builder& b, Dice& dice, StereoCamera& camera) {
  camera.pose = look({}, 0, 0, 0);
  bool day = dice.chance(0.35);
  if (day)
    daylight(b, dice);
  else
    lamps(b, dice, {0, 0, 4}, dice.real(3, 8));
  // Depths from 2 metres on; the ratio of far to near sets the spread of disparities.
  float near = 2, far = near * dice.log_real(3, 14);
  bool open = day && dice.chance(0.3);  // sky behind instead of a backdrop
  if (!open) backdrop(b, dice, camera, far * dice.real(1, 1.3), dice.chance(0.4));
  if (dice.chance(0.4)) {  // a floor
    float y = -metres(camera, 0.5f * static_cast<float>(camera.height), near * dice.real(1.2, 3));
    Material m = b.make.any(dice, dice.real(0.5, 2));
    b.scene.add(rectangle(20 * far, 20 * far),
                Transform::move({0, y, 0}) * Transform::turn_x(0.5f * kPi + dice.normal(0.05)),
                std::move(m));
  }
  float window = std::sqrt(static_cast<float>(camera.width) * static_cast<float>(camera.height));
  // Large objects first, then many smaller ones.
  for (int i = b.amount(dice, dice.real(3, 8)); i > 0; --i) {
    float z = draw_depth(dice, near * 1.5f, far);
    float size = std::min(metres(camera, window * dice.real(0.4, 1), z), 0.45f * z);
    b.thing(dice, Transform::move(seen_place(dice, camera, z, 0.15f)) * dice.turn(), size);
  }
  for (int i = b.amount(dice, dice.real(12, 45)); i > 0; --i) {
    float z = draw_depth(dice, near, far);
    float size = std::min(metres(camera, window * dice.log_real(0.06, 0.4), z), 0.4f * z);
    b.thing(dice, Transform::move(seen_place(dice, camera, z + 0.5f * size, 0.1f)) * dice.turn(),
            size);
  }
  for (int i = b.thin_amount(dice, 3); i > 0; --i) {  // rods and wires across the view
    float z = draw_depth(dice, near, far);
    Vec3 a = seen_place(dice, camera, z, 0.3f),
         c = seen_place(dice, camera, draw_depth(dice, near, far), 0.3f);
    float r = metres(camera, dice.log_real(0.6, 5), std::min(z, c.z));
    b.bar({}, a, c, r, b.scene.add_material(b.make.any(dice, 20 * r)), 8);
  }
  if (b.options.dense > 0 && dice.chance(b.options.dense)) {
    for (auto i = static_cast<int>(dice.log_real(50, 200)); i > 0; --i) {
      float z = draw_depth(dice, near, far);
      float size = std::min(metres(camera, window * dice.log_real(0.03, 0.25), z), 0.4f * z);
      Transform at =
          Transform::move(seen_place(dice, camera, z + 0.5f * size, 0.05f)) * dice.turn();
      // Mostly simple shapes: furniture in such numbers costs more time than it teaches.
      if (dice.chance(0.85))
        b.solid(dice, at, size);
      else
        b.thing(dice, at, size);
    }
  }
  float roll = dice.chance(0.5) ? dice.real(-kPi, kPi) : 0;
  if (roll != 0 && !open)  // tip the world, not the camera
    for (auto& light : b.scene.lights) light.place = Transform::turn_z(roll).point(light.place);
  edge_things(b, dice, camera, near);
}

void build_layers(Builder& b, Dice& dice, StereoCamera& camera) {
  camera.pose = look({}, 0, 0, 0);
  lamps(b, dice, {0, 1, 2}, dice.real(3, 8));
  if (dice.chance(0.3)) b.scene.lights.clear(), b.scene.ambient = 1;  // flat light, pictures only
  float near = 2, far = near * dice.log_real(1.8, 12);
  backdrop(b, dice, camera, far * 1.1f, dice.chance(0.2));
  if (dice.chance(0.5)) {  // steep floor, ceiling or side wall
    float off = metres(camera, 0.5f * static_cast<float>(camera.height), near * dice.real(1.2, 3));
    float turn = 0.5f * kPi * static_cast<float>(dice.count(0, 3));
    b.scene.add(rectangle(20 * far, 20 * far),
                Transform::turn_z(turn) * Transform::move({0, -off, 0}) *
                    Transform::turn_x(0.5f * kPi + dice.normal(0.1)),
                b.make.any(dice, dice.real(0.5, 2)));
  }
  float window = std::sqrt(static_cast<float>(camera.width) * static_cast<float>(camera.height));
  for (int i = b.amount(dice, dice.real(6, 26)); i > 0; --i) {
    float z = draw_depth(dice, near, far);
    float size = metres(camera, window * dice.log_real(0.1, 0.9), z);
    float tilt = dice.chance(0.6) ? 0.3f : 0.9f;
    float slant_y = std::clamp(dice.normal(tilt), -1.3f, 1.3f),
          slant_x = std::clamp(dice.normal(tilt), -1.3f, 1.3f);
    size = std::min(size, 1.1f * z);
    Transform at = Transform::move(seen_place(
                       dice, camera, z + 0.3f * size * std::abs(std::sin(slant_y)), 0.1f)) *
                   Transform::turn_y(slant_y) * Transform::turn_x(slant_x) *
                   Transform::turn_z(dice.real(0, 6.28));
    Material m = dice.chance(0.5) ? b.make.picture(dice, size) : b.make.any(dice, size);
    switch (dice.count(0, 4)) {
      case 0:
      case 1:
        b.scene.add(rectangle(size, size * dice.real(0.3, 1)), at, std::move(m));
        break;
      case 2: {
        auto outline = random_outline(dice);
        for (auto& p : outline) p = p * size;
        b.scene.add(extrusion(outline, 0), at, std::move(m));
        break;
      }
      case 3:
        b.lattice(dice, at, size, size * dice.real(0.4, 1));
        break;
      default:
        b.scene.add(rectangle(size * 1.5f, size * dice.log_real(0.01, 0.1)), at, std::move(m));
        break;
    }
  }
  edge_things(b, dice, camera, near);
}

void add_floaters(Builder& b, Dice& dice, const Caster& caster, const StereoCamera& camera,
                  float near, int count) {
  auto width = static_cast<float>(camera.width), height = static_cast<float>(camera.height);
  float window = std::sqrt(width * height);
  for (; count > 0; --count) {
    Dice own = dice.fork();
    float x = own.real(0, 1) * width, y = own.real(0, 1) * height;
    float behind = depth_at(caster, camera, x, y);
    float z = draw_depth(own, near, std::max(near, behind));
    // No larger than fits between the camera and the depth drawn.
    float size = std::min(metres(camera, window * own.log_real(0.05, 0.4), z), 0.4f * z);
    Vec3 place = camera.center(false) + camera.ray(x, y) * z;
    b.thing(own, Transform::move(place) * own.turn(), size);
  }
}

}  // namespace nmrf::synth
