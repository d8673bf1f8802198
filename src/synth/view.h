// The two images of a scene and the exact truth that belongs to them.
#pragma once

#include <opencv2/core.hpp>

#include "synth/shader.h"

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
  cv::Mat surfaces;   // CV_8UC1, Surface
  cv::Mat occluded;   // CV_8UC1, 255 where the other camera does not see the point
};

// Both of one eye. The colour is CV_32FC3 (red, green, blue, linear); pixels at edges of surfaces
// and shadows take `edge_samples` rays, the others one.
struct View {
  Truth truth;
  cv::Mat color;
};
View render_view(const Scene& scene, const Caster& caster, const StereoCamera& camera, bool right,
                 const Misalignment& misalignment, int edge_samples);

}  // namespace nmrf::synth
