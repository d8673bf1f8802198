// Small errors of rectification: the right image lies a little lower, is turned or larger.
#pragma once

#include "nmrf/export.h"
#include "nmrf/image.h"

namespace nmrf {

// Where the right image shows what it should show at (x, y), both from the image's middle:
//   y + offset + turn x + scale y + keystone x y
//   x          - turn y + scale x
// The last two columns follow from the first two as for a camera that is rolled or of another focal
// length. A shift along rows cannot be told from disparity, and none is assumed.
struct Alignment {
  double offset = 0;    // px
  double turn = 0;      // px per px, about radians
  double scale = 0;     // px per px: 0.01 for an image that is 1 % larger
  double keystone = 0;  // 1 / px: the right camera looks inwards or outwards

  friend bool operator==(const Alignment&, const Alignment&) = default;
  // None at all: the image stays as it is, bit for bit.
  bool none() const { return *this == Alignment(); }
  // Root mean square of the vertical error over an image of this size, px.
  NMRF_API double vertical_rms(int width, int height) const;
};

// The right image as it should have been, 8-bit RGB; what it does not show repeats its border.
NMRF_API Image aligned(const ImageView& right, const Alignment& alignment);

}  // namespace nmrf
