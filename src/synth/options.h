// The settings of the synthetic scenes.
#pragma once

#include <cstdint>
#include <string>

#include "core/fields.h"

namespace nmrf {

// What is rendered. Every weight and strength may be 0, which switches that thing off; shares and
// chances lie in [0, 1].
struct SynthOptions {
  int width = 512;  // of the rendered window, pixels
  int height = 320;
  double max_disp = 256;  // no pixel has more, pixels
  std::int64_t seed = 1;
  std::string textures;  // folder of photographs; empty = procedural textures only

  // The window is cut out of the image of a larger sensor, as training crops are. Its size relative
  // to the window and the field of view of the whole sensor are drawn between these.
  double sensor_min = 1.0;
  double sensor_max = 2.4;
  double fov_min = 35;  // degrees, horizontal
  double fov_max = 90;
  // The baseline follows from the disparity of the near parts of the scene, which is drawn
  // log-uniformly between these fractions of the sensor's width.
  double near_min = 0.02;
  double near_max = 0.24;
  bool near_uniform = false;  // uniformly, from a tenth of near_max on, for every kind of scene
  double baseline = 0;        // metres; 0 = as above, else fixed
  double focal = 0;           // pixels; 0 = from the field of view, else fixed

  // Shares of the kinds of scene (any positive numbers).
  double mix_room = 0.20;
  double mix_street = 0.24;
  double mix_park = 0.12;
  double mix_still = 0.18;
  double mix_flying = 0.18;
  double mix_layers = 0.08;
  double clutter = 1.0;  // scales the number of objects
  double border = 0.3;   // chance of near things at the sides of flying and layered scenes
  // Objects that float inside furnished scenes, with uniform disparity from near to far.
  double floaters = 0;  // chance that a room, street, park, still life or layered scene has them
  int floaters_min = 10;
  int floaters_max = 30;
  double dense = 0;  // chance of 50 to 200 more objects in a flying scene
  // Streets.
  double gloss = 0;    // share of vehicles with dark, reflecting windows and panels
  double fences = 0;   // mean number of further fences on each side
  double low_sun = 0;  // chance of a sun just above the horizon, outdoors

  double photo = 0.35;         // share of surfaces that take a photograph, where it fits
  double plain = 0.16;         // share of untextured surfaces
  double low_contrast = 0.25;  // share of textures with little contrast
  double detail = 0.7;         // share of surfaces with detail down to the pixel
  double shiny = 0.3;          // share of objects with highlights
  double mirror = 0.02;        // share of objects that reflect their surroundings
  double glass = 0.02;         // share of objects that can be seen through
  double shadows = 0.85;       // chance that the lights of a scene cast shadows
  double thin = 1.0;           // scales the number of poles, wires, fences, leaves

  // Strengths of the camera's faults; 1 is the default spread, 0 an ideal camera.
  double blur = 1;
  double noise = 1;
  double vignette = 1;
  double exposure = 1;       // differences between the eyes
  double white_balance = 1;  // differences between the eyes
  double rectification = 1;  // vertical misalignment, always below 1.5 pixels times this
  double vertical = 0;       // pixels: half the pairs are misaligned by up to this instead
  double asymmetric = 0;     // chance that one eye gets half to twice the other's light
  double row_noise = 0;      // bands of rows that flicker, as of a rolling shutter
  double jpeg = 0.2;         // chance of compression
  double grey = 0.15;        // chance of a pair without colour
  int edge_samples = 6;      // rays through a pixel at edges and fine detail

  // Of sequences: how far the camera and objects move from frame to frame, at most.
  double motion_camera = 0.015;  // depths of the near parts
  double motion_turn = 0.4;      // degrees
  double motion_objects = 0.02;  // depths of the object
  int movers = 4;                // moving objects, at most

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& visit) {
    visit("width", self.width, "pixels");
    visit("height", self.height, "pixels");
    visit("max_disp", self.max_disp, "largest disparity, pixels");
    visit("seed", self.seed, "the same seed gives the same scenes");
    visit("textures", self.textures, "folder of photos used as textures; empty = none");
    visit("sensor_min", self.sensor_min, "smallest sensor the window is cut from, in windows");
    visit("sensor_max", self.sensor_max, "largest sensor the window is cut from, in windows");
    visit("fov_min", self.fov_min, "horizontal field of view of the sensor, degrees, at least");
    visit("fov_max", self.fov_max, "horizontal field of view of the sensor, degrees, at most");
    visit("near_min", self.near_min, "disparity of near parts, fraction of the sensor, at least");
    visit("near_max", self.near_max, "disparity of near parts, fraction of the sensor, at most");
    visit("near_uniform", self.near_uniform,
          "draw uniformly between near_max / 10 and near_max instead");
    visit("baseline", self.baseline, "metres; 0 = from near_min and near_max");
    visit("focal", self.focal, "pixels; 0 = from fov_min and fov_max");
    visit("mix.room", self.mix_room, "share of rooms");
    visit("mix.street", self.mix_street, "share of streets");
    visit("mix.park", self.mix_park, "share of parks and terrain");
    visit("mix.still", self.mix_still, "share of close-up still lifes");
    visit("mix.flying", self.mix_flying, "share of flying objects");
    visit("mix.layers", self.mix_layers, "share of slanted planar layers");
    visit("clutter", self.clutter, "scales the number of objects");
    visit("border", self.border,
          "probability of near objects cut by the sides, in flying and layered scenes");
    visit("floaters.chance", self.floaters,
          "probability of floating objects, in all kinds of scenes but flying");
    visit("floaters.min", self.floaters_min, "smallest number of floating objects");
    visit("floaters.max", self.floaters_max, "largest number of floating objects");
    visit("floaters.dense", self.dense, "probability of 50 to 200 more objects in flying scenes");
    visit("gloss", self.gloss, "share of vehicles with dark, reflecting windows and panels");
    visit("fences", self.fences, "mean number of extra fences on each side of a street");
    visit("low_sun", self.low_sun, "probability of a low sun, outdoors");
    visit("photo", self.photo, "share of photos among the textures that can use one");
    visit("plain", self.plain, "share of untextured surfaces");
    visit("low_contrast", self.low_contrast, "share of textures with little contrast");
    visit("detail", self.detail, "share of surfaces with detail down to the pixel");
    visit("shiny", self.shiny, "share of objects with highlights");
    visit("mirror", self.mirror, "share of mirrors");
    visit("glass", self.glass, "share of glass objects");
    visit("shadows", self.shadows, "probability that lights cast shadows");
    visit("thin", self.thin, "scales the number of thin structures");
    visit("camera.blur", self.blur, "strength of lens blur");
    visit("camera.noise", self.noise, "strength of sensor noise");
    visit("camera.vignette", self.vignette, "strength of vignetting");
    visit("camera.exposure", self.exposure, "strength of exposure differences between the cameras");
    visit("camera.white_balance", self.white_balance,
          "strength of colour differences between the cameras");
    visit("camera.rectification", self.rectification, "strength of vertical misalignment");
    visit("camera.vertical", self.vertical,
          "px: vertical misalignment of half the pairs (shift, rotation and scale combined)");
    visit("camera.asymmetric", self.asymmetric,
          "probability that one camera gets half to twice the light of the other");
    visit("camera.row_noise", self.row_noise, "strength of row noise");
    visit("camera.jpeg", self.jpeg, "probability of JPEG compression");
    visit("camera.grey", self.grey, "probability of a grey pair");
    visit("edge_samples", self.edge_samples, "rays per pixel at edges, 1 to 16");
    visit("motion.camera", self.motion_camera,
          "sequences: largest camera motion per frame, in depths of the near parts");
    visit("motion.turn", self.motion_turn, "sequences: largest camera rotation per frame, degrees");
    visit("motion.objects", self.motion_objects,
          "sequences: largest object motion per frame, in depths of the object");
    visit("motion.movers", self.movers, "sequences: largest number of moving objects");
  }

  // Throws Error(kUsage) naming the setting that is out of range.
  void validate() const;

  // The same scenes through an ideal camera and without view-dependent surfaces: what the checks of
  // the truth render.
  SynthOptions ideal() const;
};

}  // namespace nmrf
