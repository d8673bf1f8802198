// Small rectification errors: vertical offset, rotation and scale of the right image.
#pragma once

#include "nmrf/export.h"
#include "nmrf/image.h"

namespace nmrf {

// Where the right image shows the point that belongs at (x, y), both relative to the centre:
//   y + offset + turn x + scale y + keystone x y
//   x          - turn y + scale x
// as for a camera that is rolled or has another focal length. A horizontal shift cannot be told
// from disparity, and none is assumed.
struct Alignment {
  double offset = 0;    // px
  double turn = 0;      // px per px, about radians
  double scale = 0;     // px per px: 0.01 for an image that is 1 % larger
  double keystone = 0;  // 1 / px: the right camera looks inwards or outwards

  friend bool operator==(const Alignment&, const Alignment&) = default;
  // No correction: the image stays unchanged, bit for bit.
  bool none() const { return *this == Alignment(); }
  // Root mean square of the vertical error over an image of this size, px.
  NMRF_API double vertical_rms(int width, int height) const;
};

// The corrected right image, 8-bit RGB; the border is replicated outside the input.
NMRF_API Image aligned(const ImageView& right, const Alignment& alignment);

}  // namespace nmrf
