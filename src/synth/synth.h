// Rendered stereo pairs with exact truth.
//
//   SynthOptions options;
//   SynthPair pair = render_pair(options, options.seed, 0);
//   SynthCheck check = check_pair(pair);
#pragma once

#include <cstdint>
#include <functional>
#include <opencv2/core.hpp>
#include <string>

#include "nmrf/geometry.h"
#include "synth/options.h"

namespace nmrf {

// One rendered pair; all maps have the size of the images. The truth belongs to the centre of each
// pixel and is never mixed across edges. It is known everywhere: the sky is (nearly) infinitely
// far.
struct SynthPair {
  cv::Mat left, right;                      // CV_8UC3, BGR
  cv::Mat left_disparity, right_disparity;  // CV_32FC1, pixels, x_left - x_right in both, >= 0
  cv::Mat left_occluded, right_occluded;    // CV_8UC1, 255 = the other view does not show the point
  cv::Mat left_objects, right_objects;      // CV_32SC1, an id per surface, 0 = sky
  cv::Mat left_surfaces;                    // CV_8UC1, classes: Surface (data/surfaces.h)
  // Of the later frames of a sequence, CV_32FC2: where the point of a left pixel was in the left
  // image of the frame before, px; NaN where that image does not show it. Else empty.
  cv::Mat left_past;
  Calibration calibration;
  std::string kind;  // of scene: room, street, park, still, flying, layers
};

// Renders pair number `index` of the series `seed`. The result depends on nothing else: neither on
// threads nor on what was rendered before. Works in the calling thread. Safe to call from many.
// Throws Error(kUsage) for bad options, Error(kInput) for a bad folder of textures.
SynthPair render_pair(const SynthOptions& options, std::uint64_t seed, std::int64_t index);

// The same scene in `frames` pairs of a moving camera, with a few objects of their own motion (the
// settings `motion`). One camera: its faults stay, its noise does not. Calls use(frame, pair).
void render_sequence(const SynthOptions& options, std::uint64_t seed, std::int64_t index,
                     int frames, const std::function<void(int frame, const SynthPair& pair)>& use);

// How well the truth of a pair explains its images.
struct SynthCheck {
  // Difference between the left image and the right one warped by the disparity, over pixels that
  // both views show, grey levels (0 to 255): median and 90 per cent quantile.
  double photo_median = 0;
  double photo_q90 = 0;
  // Share of the pixels that both views show whose left and right disparities differ by more than
  // half a pixel.
  double inconsistent = 0;
  double occluded = 0;       // share of the left pixels
  double min_disparity = 0;  // over both views
  double max_disparity = 0;
  std::int64_t not_finite = 0;  // disparities that are no number, or negative
};
// Throws Error(kInput) when the maps of the pair do not fit together.
SynthCheck check_pair(const SynthPair& pair);

}  // namespace nmrf
