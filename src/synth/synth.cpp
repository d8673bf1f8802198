#include "synth/synth.h"

#include <algorithm>
#include <cmath>
#include <limits>
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

constexpr std::uint64_t kMotionStream = 0x30710;

// A scene that is ready to be photographed.
struct Studio {
  Studio(const SynthOptions& options, std::uint64_t seed, std::int64_t index);

  const SynthOptions& options;
  Dice dice;
  SceneKind kind;
  Sensor sensor;
  StereoCamera camera;
  MaterialMaker make;
  Scene scene;
  std::optional<Caster> caster;
  Probe seen;

  SynthPair photograph(const Scene& what, const Caster& rays, const StereoCamera& from,
                       CameraModel& model) const;
};

Studio::Studio(const SynthOptions& wish, std::uint64_t seed, std::int64_t index)
    : options((wish.validate(), wish)),
      dice(mix_seed({seed, static_cast<std::uint64_t>(index)})),
      kind(draw_kind(options, dice)),
      sensor(draw_sensor(options, kind, dice)),
      camera(camera_of(options, sensor)),
      make(options) {
  Builder builder(options, make, scene, 1 / camera.focal);
  Dice scene_dice = dice.fork();
  build(kind, builder, scene_dice, camera);
  caster.emplace(scene);

  // Where the scene does not depend on the window, look for a window that shows something.
  seen = probe(scene, *caster, camera);
  bool fixed = kind == SceneKind::kFlying || kind == SceneKind::kLayers;
  for (int attempt = 0; attempt < 8 && !fixed && seen.badness() > 0; ++attempt) {
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
    if (p.badness() < seen.badness()) seen = p, sensor = other, camera = moved;
  }
  // A stream of their own, and the last to come: scenes without them are as they were.
  Dice floating(mix_seed({seed, static_cast<std::uint64_t>(index), kFloaterStream}));
  if (kind != SceneKind::kFlying && floating.chance(options.floaters)) {
    add_floaters(builder, floating, *caster, camera, 0.7f * seen.near,
                 floating.count(options.floaters_min, options.floaters_max));
    caster.emplace(scene);
    seen = probe(scene, *caster, camera);
  }
  camera.baseline = options.baseline > 0 ? static_cast<float>(options.baseline)
                                         : draw_near_disparity(options, kind, sensor, dice) *
                                               seen.near / camera.focal;
  camera.near_depth =
      1.0001f * camera.focal * camera.baseline / static_cast<float>(options.max_disp);
  scene.sky_disparity = std::min(scene.sky_disparity, 0.25f * static_cast<float>(options.max_disp));
}

SynthPair Studio::photograph(const Scene& what, const Caster& rays, const StereoCamera& from,
                             CameraModel& model) const {
  synth::View left =
      render_view(what, rays, from, false, model.misalignment(false), options.edge_samples);
  synth::View right =
      render_view(what, rays, from, true, model.misalignment(true), options.edge_samples);
  SynthPair pair;
  pair.left_disparity = left.truth.disparity, pair.right_disparity = right.truth.disparity;
  pair.left_occluded = left.truth.occluded, pair.right_occluded = right.truth.occluded;
  pair.left_objects = left.truth.objects, pair.right_objects = right.truth.objects;
  pair.left_surfaces = left.truth.surfaces;
  float half_diagonal = 0.5f * std::hypot(sensor.width, sensor.height);
  model.develop(left.color, right.color, from.cx, from.cy, half_diagonal, pair.left, pair.right);

  Calibration& c = pair.calibration;
  c.fx = c.fy = from.focal;
  c.cx = from.cx, c.cy = from.cy;
  c.baseline = from.baseline;
  c.width = options.width, c.height = options.height;
  c.source = "synth";
  pair.kind = enum_name(kind);
  return pair;
}

// A thing with a motion of its own.
struct Mover {
  Dice dice;  // of its shape
  Transform turned;
  Vec3 place, velocity;  // metres, and per frame
  float spin = 0;        // about the vertical axis, radians per frame
  float size = 1;
  int first = 0, end = 0;  // its object ids

  Transform at(int frame) const {
    Transform own = Transform::turn_y(spin * static_cast<float>(frame)) * turned;
    own.shift = place + velocity * static_cast<float>(frame);
    return own;
  }
  // Where a point of it was one frame earlier.
  Vec3 before(Vec3 point, int frame) const {
    const Vec3 arm = Transform::turn_y(-spin).direction(point - at(frame).shift);
    return at(frame - 1).shift + arm;
  }
};

std::vector<Mover> draw_movers(const Studio& studio, Dice& dice) {
  const StereoCamera& camera = studio.camera;
  std::vector<Mover> movers;
  for (int count = dice.count(studio.options.movers > 0 ? 1 : 0, studio.options.movers); count > 0;
       --count) {
    Mover mover{dice.fork(), dice.turn(), {}, {}};
    const float x = dice.real(0.15, 0.85) * static_cast<float>(camera.width),
                y = dice.real(0.15, 0.85) * static_cast<float>(camera.height),
                z = studio.seen.near * dice.real(0.9, 2);
    mover.place = camera.center(false) + camera.ray(x, y) * z;
    mover.size = 0.3f * z * dice.real(0.2, 1) * static_cast<float>(camera.width) / camera.focal;
    mover.velocity =
        dice.unit() * (z * static_cast<float>(studio.options.motion_objects) * dice.real(0.3, 1));
    mover.spin = dice.normal(0.02);
    movers.push_back(mover);
  }
  return movers;
}

// CV_32FC2: see SynthPair::left_past.
cv::Mat past_of(const SynthPair& now, const SynthPair& before, const StereoCamera& camera,
                const StereoCamera& old, const std::vector<Mover>& movers, int frame) {
  constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();
  cv::Mat past(now.left.size(), CV_32FC2, cv::Scalar(kUnknown, kUnknown));
  for (int y = 0; y < past.rows; ++y)
    for (int x = 0; x < past.cols; ++x) {
      const int object = now.left_objects.at<int>(y, x);
      const float d = now.left_disparity.at<float>(y, x);
      const Vec3 ray = camera.ray(static_cast<float>(x), static_cast<float>(y));
      Vec3 seen = ray;  // the sky is infinitely far
      if (object > 0) {
        Vec3 point = camera.center(false) + ray * (camera.focal * camera.baseline / d);
        for (const Mover& mover : movers)
          if (object >= mover.first && object < mover.end) point = mover.before(point, frame);
        seen = point - old.center(false);
      }
      const float depth = dot(seen, old.pose.z);
      if (!(depth > 0)) continue;
      const float u = old.cx + old.focal * dot(seen, old.pose.x) / depth,
                  v = old.cy - old.focal * dot(seen, old.pose.y) / depth;
      const long column = std::lround(u), row = std::lround(v);
      if (column < 0 || row < 0 || column >= past.cols || row >= past.rows) continue;
      const float expected = object > 0 ? old.focal * old.baseline / depth : d,
                  found = before.left_disparity.at<float>(static_cast<int>(row),
                                                          static_cast<int>(column));
      if (std::abs(expected - found) <= 0.5f) past.at<cv::Vec2f>(y, x) = {u, v};
    }
  return past;
}

}  // namespace
}  // namespace synth

SynthPair render_pair(const SynthOptions& options, std::uint64_t seed, std::int64_t index) {
  using namespace synth;
  Studio studio(options, seed, index);
  CameraModel model(options, studio.dice, studio.camera.cx, studio.camera.cy);
  return studio.photograph(studio.scene, *studio.caster, studio.camera, model);
}

void render_sequence(const SynthOptions& options, std::uint64_t seed, std::int64_t index,
                     int frames, const std::function<void(int, const SynthPair&)>& use) {
  using namespace synth;
  check(frames >= 1, ErrorKind::kUsage, "a sequence of {} frames; expected 1 or more", frames);
  Studio studio(options, seed, index);
  studio.caster.reset();  // one at a time
  CameraModel model(options, studio.dice, studio.camera.cx, studio.camera.cy);
  Dice dice(mix_seed({seed, static_cast<std::uint64_t>(index), kMotionStream}));
  const Vec3 velocity = dice.unit() * (studio.seen.near * dice.real(0.3, 1) *
                                       static_cast<float>(options.motion_camera));
  const float turn = static_cast<float>(options.motion_turn) * kPi / 180,
              yaw = turn * dice.real(-1, 1), pitch = 0.4f * turn * dice.real(-1, 1),
              phase = dice.real(0, 2 * kPi);
  std::vector<Mover> movers = draw_movers(studio, dice);

  SynthPair before;
  StereoCamera old;
  for (int frame = 0; frame < frames; ++frame) {
    const auto time = static_cast<float>(frame);
    StereoCamera camera = studio.camera;
    // The turn swings to and fro, so that the scene stays in view.
    const float swing = 8 * (std::sin(phase + time / 8) - std::sin(phase));
    camera.pose =
        studio.camera.pose * Transform::turn_y(yaw * swing) * Transform::turn_x(pitch * swing);
    camera.pose.shift = studio.camera.pose.shift + velocity * time;
    Scene scene = studio.scene;
    Builder builder(options, studio.make, scene, 1 / camera.focal);
    for (Mover& mover : movers) {
      Dice shape = mover.dice;
      mover.first = scene.object_count();
      builder.thing(shape, mover.at(frame), mover.size);
      mover.end = scene.object_count();
    }
    SynthPair pair;
    {
      const Caster caster(scene);
      pair = studio.photograph(scene, caster, camera, model);
    }
    if (frame > 0) pair.left_past = past_of(pair, before, camera, old, movers, frame);
    use(frame, pair);
    before = pair;
    old = camera;
  }
}

}  // namespace nmrf
