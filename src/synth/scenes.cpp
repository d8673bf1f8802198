#include "synth/scenes.h"

namespace nmrf::synth {
namespace {

// Where in the range of an option each kind of scene draws from: 0 = its lower end, 1 = its upper.
struct Span {
  float low, high;
};
struct KindSpans {
  Span fov, near_disparity, aspect;  // aspect: height of the sensor relative to its width
};

KindSpans spans_of(SceneKind kind) {
  switch (kind) {
    case SceneKind::kRoom:
      return {{0.15f, 1}, {0.1f, 1}, {0.55f, 0.8f}};
    case SceneKind::kStreet:
      return {{0.35f, 1}, {0.1f, 0.75f}, {0.28f, 0.65f}};
    case SceneKind::kPark:
      return {{0.3f, 1}, {0, 0.75f}, {0.5f, 0.7f}};
    case SceneKind::kStill:
      return {{0, 0.35f}, {0.45f, 1}, {0.65f, 0.85f}};
    case SceneKind::kFlying:
      return {{0, 0.6f}, {0.25f, 1}, {0.5f, 0.75f}};
    case SceneKind::kLayers:
      return {{0, 0.8f}, {0.1f, 1}, {0.5f, 0.8f}};
  }
  return {{0, 1}, {0, 1}, {0.5f, 0.8f}};
}

}  // namespace

SceneKind draw_kind(const SynthOptions& options, Dice& dice) {
  const double weights[] = {options.mix_room,  options.mix_street, options.mix_park,
                            options.mix_still, options.mix_flying, options.mix_layers};
  return static_cast<SceneKind>(dice.weighted(weights));
}

void draw_window(const SynthOptions& options, Dice& dice, Sensor& sensor) {
  sensor.left = dice.real(0, std::max(1e-3f, sensor.width - static_cast<float>(options.width)));
  sensor.top = dice.real(0, std::max(1e-3f, sensor.height - static_cast<float>(options.height)));
}

Sensor draw_sensor(const SynthOptions& options, SceneKind kind, Dice& dice) {
  KindSpans spans = spans_of(kind);
  Sensor s;
  auto width = static_cast<float>(options.width), height = static_cast<float>(options.height);
  s.width = width * dice.log_real(options.sensor_min,
                                  std::max(options.sensor_max, options.sensor_min * 1.0001));
  s.height = std::max(height, s.width * dice.real(spans.aspect.low, spans.aspect.high));
  auto range = static_cast<float>(options.fov_max - options.fov_min);
  float fov =
      static_cast<float>(options.fov_min) + range * dice.real(spans.fov.low, spans.fov.high);
  s.focal = options.focal > 0 ? static_cast<float>(options.focal)
                              : 0.5f * s.width / std::tan(0.5f * fov * kPi / 180);
  draw_window(options, dice, s);
  return s;
}

float draw_near_disparity(const SynthOptions& options, SceneKind kind, const Sensor& sensor,
                          Dice& dice) {
  Span span = spans_of(kind).near_disparity;
  double ratio = options.near_max / options.near_min;
  double at = dice.uniform(span.low, span.high);
  double fraction = options.near_uniform
                        ? options.near_max * (0.1 + 0.9 * (at - span.low) / (span.high - span.low))
                        : options.near_min * std::pow(ratio, at);
  // Close to the bound, but below it: objects a little nearer than the near quantile must fit.
  return std::min(static_cast<float>(fraction) * sensor.width,
                  0.8f * static_cast<float>(options.max_disp));
}

StereoCamera camera_of(const SynthOptions& options, const Sensor& sensor) {
  StereoCamera c;
  c.width = options.width, c.height = options.height;
  c.focal = sensor.focal;
  c.cx = 0.5f * sensor.width - sensor.left - 0.5f;
  c.cy = 0.5f * sensor.height - sensor.top - 0.5f;
  return c;
}

Transform look(Vec3 eye, float yaw, float pitch, float roll) {
  // Columns right, up, forward; the world is left-handed like the camera (x right, y up, z ahead).
  Transform t = Transform::turn_y(yaw) * Transform::turn_x(-pitch) * Transform::turn_z(roll);
  t.shift = eye;
  return t;
}

void daylight(Builder& b, Dice& dice) {
  Scene& scene = b.scene;
  Sky& sky = scene.sky;
  sky.seed = dice.bits();
  sky.cloud_size = dice.log_real(0.4, 2.5);
  bool shadows = dice.chance(b.options.shadows);
  float up = std::sin(dice.real(0.2, 1.3)), around = dice.real(0, 2 * kPi),
        flat = std::sqrt(1 - up * up);
  bool low = b.options.low_sun > 0 && dice.chance(b.options.low_sun);
  if (low) up = std::sin(dice.real(0.06, 0.3)), flat = std::sqrt(1 - up * up);
  Vec3 sun{flat * std::cos(around), up, flat * std::sin(around)};
  sky.sun = sun;
  Light light;
  light.sun = true, light.place = sun, light.shadows = shadows;
  light.size = dice.chance(0.5) ? dice.real(0.004, 0.03) : 0;
  int weather = dice.weighted(std::initializer_list<double>{4, 2.5, 3, 1.5});
  if (low) weather = 3;
  if (weather == 0) {  // clear
    sky.zenith = Vec3{0.12f, 0.27f, 0.65f} * dice.real(0.6, 1.3),
    sky.horizon = Vec3{0.6f, 0.75f, 0.92f} * dice.real(0.7, 1.2);
    sky.clouds = dice.chance(0.5) ? dice.real(0, 0.35) : 0;
    light.color = Vec3{1, 0.95f, 0.86f} * dice.real(1.6, 3.2);
    scene.ambient = dice.real(0.25, 0.6);
    sky.glow = dice.real(0, 0.8);
  } else if (weather == 1) {  // broken clouds
    sky.zenith = Vec3{0.25f, 0.4f, 0.65f}, sky.horizon = Vec3{0.8f, 0.83f, 0.86f};
    sky.clouds = dice.real(0.35, 0.8);
    light.color = Vec3{1, 0.97f, 0.92f} * dice.real(0.6, 1.5);
    scene.ambient = dice.real(0.5, 0.9);
  } else if (weather == 2) {  // overcast, soft
    float grey = dice.real(0.7, 1.1);
    sky.zenith = Vec3{0.82f, 0.85f, 0.9f} * grey, sky.horizon = Vec3{0.9f, 0.92f, 0.94f} * grey;
    sky.clouds = dice.chance(0.5) ? dice.real(0.3, 0.6) : 0;
    light.color = Vec3{1, 1, 1} * dice.real(0.1, 0.4);
    light.size = 0.12f;
    scene.ambient = dice.real(0.8, 1.1);
  } else {  // low sun
    sky.zenith = Vec3{0.15f, 0.22f, 0.45f}, sky.horizon = Vec3{1, 0.65f, 0.4f} * dice.real(0.6, 1);
    sky.clouds = dice.real(0, 0.6);
    light.color = Vec3{1, 0.72f, 0.45f} * dice.real(1, 2.4);
    scene.ambient = dice.real(0.3, 0.6);
    sky.glow = dice.real(0, 1);
  }
  sky.ground = Vec3{0.16f, 0.15f, 0.13f} * dice.real(0.6, 1.6);
  scene.lights.push_back(light);
  scene.corner_radius = dice.chance(0.6) ? dice.real(0.4, 1.5) : 0;
  scene.sky_disparity = dice.chance(0.6) ? 0 : dice.real(0, 0.5);
  if (dice.chance(0.3)) {
    scene.fog = dice.log_real(0.001, 0.015);
    scene.fog_color = sky.horizon * dice.real(0.8, 1);
  }
}

void lamps(Builder& b, Dice& dice, Vec3 center, float reach) {
  Scene& scene = b.scene;
  float warm = dice.real(0, 1);
  scene.sky.zenith = mix(Vec3{0.85f, 0.92f, 1}, Vec3{1, 0.88f, 0.72f}, warm);
  scene.sky.horizon = scene.sky.zenith * 0.9f;
  scene.sky.ground = scene.sky.zenith * dice.real(0.3, 0.7);
  scene.ambient = dice.real(0.25, 0.75);
  bool shadows = dice.chance(b.options.shadows);
  int count = dice.weighted(std::initializer_list<double>{0, 4, 3, 1.5});
  for (int i = 0; i < count; ++i) {
    Light light;
    Vec3 d = dice.unit();
    d.y = std::abs(d.y) + 0.35f;
    light.place = center + normalize(d) * (reach * dice.real(0.6, 1.2));
    light.color =
        mix(Vec3{0.9f, 0.95f, 1}, Vec3{1, 0.85f, 0.65f}, clamp01(warm + dice.real(-0.3, 0.3))) *
        (dice.real(0.6, 2) / std::sqrt(static_cast<float>(count)));
    light.reach = reach * dice.real(0.8, 2);
    light.size = dice.chance(0.6) ? reach * dice.real(0.02, 0.15) : 0;
    light.shadows = shadows && i < 2;  // the third only fills in
    scene.lights.push_back(light);
  }
  scene.corner_radius = dice.chance(0.7) ? 0.15f * reach * dice.real(0.5, 1.5) : 0;
}

}  // namespace nmrf::synth
