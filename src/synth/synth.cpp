#include "synth/synth.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "core/check.h"
#include "synth/camera.h"
#include "synth/scenes.h"
#include "synth/view.h"

namespace nmrf {
namespace synth {
namespace {

constexpr std::uint64_t kFloaterStream = 0xf10a7;

// What a coarse grid of rays tells about a view.
struct Probe {
  float near = 1;     // depth of the near quantile, metres
  float sky = 0;      // share
  float largest = 0;  // share of the most frequent object
  float spread = 1;   // depth of the median relative to `near`
  int objects = 0;    // how many were met
  // How unsuitable the view is for learning: 0 is good.
  float badness() const {
    return std::max(0.f, sky - 0.4f) * 3 + std::max(0.f, largest - 0.55f) * 2 +
           std::max(0.f, spread - 12) * 0.05f +
           static_cast<float>(std::max(0, 12 - objects)) * 0.04f;
  }
};

Probe probe(const Scene& scene, const Caster& caster, const StereoCamera& camera) {
  constexpr int kColumns = 32, kRows = 20;
  constexpr double kNearShare = 0.04;
  std::vector<float> depths;
  std::map<int, int> objects;
  Packet packet;
  int sky = 0;
  for (int i = 0; i < kColumns * kRows; i += kPacket) {
    for (int k = 0; k < kPacket; ++k) {
      int cell = i + k;
      float x = (static_cast<float>(cell % kColumns) + 0.5f) / kColumns *
                static_cast<float>(camera.width);
      float y =
          (static_cast<float>(cell / kColumns) + 0.5f) / kRows * static_cast<float>(camera.height);
      packet.set(k, camera.center(false), camera.ray(x, y), 0.05f, 1e9f);
    }
    caster.nearest(packet, true);
    for (int k = 0; k < kPacket; ++k) {
      depths.push_back(packet.hit(k) ? packet.distance(k) : 1e9f);
      if (packet.hit(k))
        ++objects[scene.object_of(packet.triangle(k))];
      else
        ++sky;
    }
  }
  std::sort(depths.begin(), depths.end());
  auto count = static_cast<double>(depths.size());
  Probe p;
  p.near = depths[static_cast<std::size_t>(kNearShare * count)];
  p.sky = static_cast<float>(sky / count);
  for (auto [object, n] : objects) p.largest = std::max(p.largest, static_cast<float>(n / count));
  p.objects = static_cast<int>(objects.size());
  p.spread = depths[static_cast<std::size_t>(0.5 * (count - sky))] / p.near;
  return p;
}

void build(SceneKind kind, Builder& b, Dice& dice, StereoCamera& camera) {
  switch (kind) {
    case SceneKind::kRoom:
      return build_room(b, dice, camera);
    case SceneKind::kStreet:
      return build_street(b, dice, camera);
    case SceneKind::kPark:
      return build_park(b, dice, camera);
    case SceneKind::kStill:
      return build_still(b, dice, camera);
    case SceneKind::kFlying:
      return build_flying(b, dice, camera);
    case SceneKind::kLayers:
      return build_layers(b, dice, camera);
  }
}

}  // namespace
}  // namespace synth

SynthPair render_pair(const SynthOptions& options, std::uint64_t seed, std::int64_t index) {
  using namespace synth;
  options.validate();
  Dice dice(mix_seed({seed, static_cast<std::uint64_t>(index)}));
  SceneKind kind = draw_kind(options, dice);
  Sensor sensor = draw_sensor(options, kind, dice);
  StereoCamera camera = camera_of(options, sensor);
  MaterialMaker make(options);
  Scene scene;
  Builder builder(options, make, scene, 1 / camera.focal);
  Dice scene_dice = dice.fork();
  build(kind, builder, scene_dice, camera);
  std::optional<Caster> caster(scene);

  // Where the scene does not depend on the window, look for a window that shows something.
  Probe best = probe(scene, *caster, camera);
  bool fixed = kind == SceneKind::kFlying || kind == SceneKind::kLayers;
  for (int attempt = 0; attempt < 8 && !fixed && best.badness() > 0; ++attempt) {
    Sensor other = sensor;
    draw_window(options, dice, other);
    StereoCamera moved = camera_of(options, other);
    moved.pose = camera.pose;
    if (attempt >= 3) {
      Vec3 eye = moved.pose.shift;
      moved.pose = Transform::turn_y(dice.normal(0.4)) * moved.pose;
      moved.pose.shift = eye;
    }
    Probe p = probe(scene, *caster, moved);
    if (p.badness() < best.badness()) best = p, sensor = other, camera = moved;
  }
  // A stream of their own, and the last to come: scenes without them are as they were.
  Dice floating(mix_seed({seed, static_cast<std::uint64_t>(index), kFloaterStream}));
  if (kind != SceneKind::kFlying && floating.chance(options.floaters)) {
    add_floaters(builder, floating, *caster, camera, 0.7f * best.near,
                 floating.count(options.floaters_min, options.floaters_max));
    caster.emplace(scene);
    best = probe(scene, *caster, camera);
  }
  camera.baseline = options.baseline > 0 ? static_cast<float>(options.baseline)
                                         : draw_near_disparity(options, kind, sensor, dice) *
                                               best.near / camera.focal;
  camera.near_depth =
      1.0001f * camera.focal * camera.baseline / static_cast<float>(options.max_disp);
  scene.sky_disparity = std::min(scene.sky_disparity, 0.25f * static_cast<float>(options.max_disp));

  CameraModel model(options, dice, camera.cx, camera.cy);
  synth::View left =
      render_view(scene, *caster, camera, false, model.misalignment(false), options.edge_samples);
  synth::View right =
      render_view(scene, *caster, camera, true, model.misalignment(true), options.edge_samples);
  SynthPair pair;
  pair.left_disparity = left.truth.disparity, pair.right_disparity = right.truth.disparity;
  pair.left_occluded = left.truth.occluded, pair.right_occluded = right.truth.occluded;
  pair.left_objects = left.truth.objects, pair.right_objects = right.truth.objects;
  float half_diagonal = 0.5f * std::hypot(sensor.width, sensor.height);
  model.develop(left.color, right.color, camera.cx, camera.cy, half_diagonal, pair.left,
                pair.right);

  Calibration& c = pair.calibration;
  c.fx = c.fy = camera.focal;
  c.cx = camera.cx, c.cy = camera.cy;
  c.baseline = camera.baseline;
  c.width = options.width, c.height = options.height;
  c.source = "synth";
  pair.kind = enum_name(kind);
  return pair;
}

}  // namespace nmrf
