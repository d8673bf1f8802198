// Pictures of disparity errors in KITTI's colours.
#pragma once

#include <array>
#include <cstdint>

#include "nmrf/image.h"
#include "nmrf/map.h"

namespace nmrf {

struct ErrorMapOptions {
  bool dilate = false;  // paint the 3x3 pixels around sparse truth, so that it can be seen
};

// KITTI's measure of an error: n = min(|d - truth| / 3, 20 |d - truth| / |truth|). Above 1 the
// pixel counts as wrong (D1: more than 3 px and more than 5 %). An invalid prediction has n =
// +infinity.
float kitti_error(float predicted, float truth);

// The colour (RGB) of an error: dark blue for n = 0, over light blue below 1 and yellow above, to
// dark red; each step of the ten doubles n.
std::array<std::uint8_t, 3> kitti_error_color(float n);

// A picture, 8-bit RGB, of the errors of `predicted` where `truth` is valid (both in pixels, of
// equal size); black elsewhere. `occluded` is empty, or nonzero where the truth is hidden in the
// other view: there the colours have half intensity. With `dilate` a pixel without truth takes the
// colour of its worst neighbour among the eight.
Image error_map(const FloatMap& predicted, const FloatMap& truth, const ByteMap& occluded = {},
                const ErrorMapOptions& options = {});

}  // namespace nmrf
