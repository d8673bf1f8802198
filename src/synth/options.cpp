#include "synth/options.h"

#include <cmath>

#include "core/check.h"

namespace nmrf {
namespace {

void within(const char* name, double value, double low, double high) {
  check(std::isfinite(value) && value >= low && value <= high, ErrorKind::kUsage,
        "synth setting '{}' is {}; expected {} to {}", name, value, low, high);
}

}  // namespace

void SynthOptions::validate() const {
  within("width", width, 32, 8192);
  within("height", height, 32, 8192);
  within("max_disp", max_disp, 4, 4096);
  within("sensor_min", sensor_min, 1, 16);
  within("sensor_max", sensor_max, sensor_min, 16);
  within("fov_min", fov_min, 5, 120);
  within("fov_max", fov_max, fov_min, 120);
  within("near_min", near_min, 0.001, 1);
  within("near_max", near_max, near_min, 1);
  within("baseline", baseline, 0, 1000);
  within("focal", focal, 0, 1e5);
  const double weights[] = {mix_room, mix_street, mix_park, mix_still, mix_flying, mix_layers};
  double sum = 0;
  for (double weight : weights) {
    within("mix", weight, 0, 1e6);
    sum += weight;
  }
  check(sum > 0, ErrorKind::kUsage,
        "all shares of 'mix' are 0; give at least one kind of scene a positive share");
  within("clutter", clutter, 0, 10);
  within("border", border, 0, 1);
  within("floaters.chance", floaters, 0, 1);
  within("floaters.min", floaters_min, 0, 1000);
  within("floaters.max", floaters_max, floaters_min, 1000);
  within("floaters.dense", dense, 0, 1);
  within("gloss", gloss, 0, 1);
  within("fences", fences, 0, 20);
  within("low_sun", low_sun, 0, 1);
  within("thin", thin, 0, 10);
  within("photo", photo, 0, 1);
  within("plain", plain, 0, 1);
  within("low_contrast", low_contrast, 0, 1);
  within("detail", detail, 0, 1);
  within("shiny", shiny, 0, 1);
  within("mirror", mirror, 0, 1);
  within("glass", glass, 0, 1);
  within("shadows", shadows, 0, 1);
  within("camera.blur", blur, 0, 10);
  within("camera.noise", noise, 0, 10);
  within("camera.vignette", vignette, 0, 3);
  within("camera.exposure", exposure, 0, 5);
  within("camera.white_balance", white_balance, 0, 5);
  within("camera.rectification", rectification, 0, 10);
  within("camera.vertical", vertical, 0, 10);
  within("camera.asymmetric", asymmetric, 0, 1);
  within("camera.row_noise", row_noise, 0, 10);
  within("camera.jpeg", jpeg, 0, 1);
  within("camera.grey", grey, 0, 1);
  within("edge_samples", edge_samples, 1, 16);
  within("motion.camera", motion_camera, 0, 1);
  within("motion.turn", motion_turn, 0, 20);
  within("motion.objects", motion_objects, 0, 1);
  within("motion.movers", movers, 0, 100);
}

SynthOptions SynthOptions::ideal() const {
  SynthOptions out = *this;
  out.shiny = out.mirror = out.glass = out.gloss = 0;
  out.blur = out.noise = out.vignette = out.exposure = out.white_balance = out.rectification = 0;
  out.vertical = out.asymmetric = out.row_noise = out.jpeg = out.grey = 0;
  return out;
}

}  // namespace nmrf
