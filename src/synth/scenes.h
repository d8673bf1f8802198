// Whole scenes: rooms, streets, parks, still lifes, flying objects, layers.
#pragma once

#include <array>
#include <functional>
#include <utility>

#include "core/fields.h"
#include "synth/builder.h"
#include "synth/caster.h"

namespace nmrf {

enum class SceneKind { kRoom, kStreet, kPark, kStill, kFlying, kLayers };

template <>
struct EnumNames<SceneKind> {
  static constexpr std::array<std::pair<SceneKind, const char*>, 6> values{
      {{SceneKind::kRoom, "room"},
       {SceneKind::kStreet, "street"},
       {SceneKind::kPark, "park"},
       {SceneKind::kStill, "still"},
       {SceneKind::kFlying, "flying"},
       {SceneKind::kLayers, "layers"}}};
};

namespace synth {

// The whole sensor, and where the rendered window lies in it.
struct Sensor {
  float width = 0, height = 0;  // pixels
  float focal = 0;              // pixels
  float left = 0, top = 0;      // of the window
};

// Draws a kind of scene by the shares of the options.
SceneKind draw_kind(const SynthOptions& options, Dice& dice);
// Draws a sensor that suits the kind.
Sensor draw_sensor(const SynthOptions& options, SceneKind kind, Dice& dice);
// Moves the window to another place on the sensor.
void draw_window(const SynthOptions& options, Dice& dice, Sensor& sensor);
// The disparity of near parts, pixels.
float draw_near_disparity(const SynthOptions& options, SceneKind kind, const Sensor& sensor,
                          Dice& dice);
// The camera of a sensor without its pose and baseline.
StereoCamera camera_of(const SynthOptions& options, const Sensor& sensor);

// Fill the scene and choose the pose of the camera, whose other numbers are set.
void build_room(Builder& b, Dice& dice, StereoCamera& camera);
void build_street(Builder& b, Dice& dice, StereoCamera& camera);
void build_park(Builder& b, Dice& dice, StereoCamera& camera);
void build_still(Builder& b, Dice& dice, StereoCamera& camera);
void build_flying(Builder& b, Dice& dice, StereoCamera& camera);
void build_layers(Builder& b, Dice& dice, StereoCamera& camera);
// Adds floating objects to a finished scene: anywhere in the view, in front of what `caster` finds
// there, with uniform disparity from the depth `near` (metres) on.
void add_floaters(Builder& b, Dice& dice, const Caster& caster, const StereoCamera& camera,
                  float near, int count);

// The setting `fences`, for one side of a street: `beside` gives the place `off` metres from the
// kerb, less than `walk`, at the distance z.
void add_fences(Builder& b, Dice& dice, float walk,
                const std::function<Transform(float off, float z)>& beside);
// Sun, sky and haze of a random day; used by the outdoor scenes.
void daylight(Builder& b, Dice& dice);
// A few lamps around `center` at a distance of about `reach` metres; used indoors.
void lamps(Builder& b, Dice& dice, Vec3 center, float reach);
// A camera at `eye` that looks along `yaw` (0 = +z, positive = to the right), `pitch` up, `roll`.
Transform look(Vec3 eye, float yaw, float pitch, float roll);

}  // namespace synth
}  // namespace nmrf
