// The two images of a scene and the exact truth that belongs to them.
#pragma once

#include <opencv2/core.hpp>

#include "data/synth/shader.h"

namespace nmrf::synth {

// Vertical displacement of the colour of one camera, a small error of rectification, in pixels:
// y' = y + shift + turn * (x - cx) + stretch * (y - cy). The truth knows nothing of it.
struct Misalignment {
  float shift = 0, turn = 0, stretch = 0;
  bool none() const { return shift == 0 && turn == 0 && stretch == 0; }
};

// Geometry through the centre of every pixel.
struct Truth {
  cv::Mat disparity;  // CV_32FC1, pixels
  cv::Mat objects;    // CV_32SC1, 0 = sky
  cv::Mat occluded;   // CV_8UC1, 255 where the other camera does not see the point
};

// Casts one ray per pixel.
Truth render_truth(const Scene& scene, const Caster& caster, const StereoCamera& camera, bool right);

// The colour image, CV_32FC3 (red, green, blue, linear). Pixels at edges and fine detail take
// `edge_samples` rays, the others one.
cv::Mat render_color(const Scene& scene, const Caster& caster, const StereoCamera& camera,
                     bool right, const Misalignment& misalignment, int edge_samples);

}  // namespace nmrf::synth
