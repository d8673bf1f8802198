// The result of matching.
//
// A disparity map holds d = x_left - x_right in pixels of the image it belongs to, at least
// MatchOptions::min_disp, which is 0 by default. Pixels without a known disparity hold
// +infinity.
#pragma once

#include <cstdint>
#include <limits>

#include "nmrf/alignment.h"
#include "nmrf/export.h"
#include "nmrf/map.h"

namespace nmrf {

inline constexpr float kInvalidDisparity = std::numeric_limits<float>::infinity();  // unknown

enum class View { kLeft, kRight };  // the image that a map belongs to

// State of a pixel, bits of Disparity::mask; 0 for a pixel matched in both views.
enum PixelState : std::uint8_t {
  kMatched = 0,
  kOccluded = 1,   // hidden in the other view behind a nearer surface
  kOutOfView = 2,  // its match lies outside the other image
  kFilled = 4,     // filled in from neighbouring pixels, not matched
};

// The labels of one grid cell (8 x 8 pixels of the matched images), best first.
struct CellLabels {
  int width = 0, height = 0, count = 0;  // cells, and labels per cell
  std::vector<float> values;             // [height, width, count], pixels of the matched images
  bool empty() const { return values.empty(); }
};

// The result of matching one pair. All maps have the same size.
struct Disparity {
  FloatMap map;  // pixels
  ByteMap mask;  // PixelState bits
  // Probability that the error is at most 1 px. Models without an error model (docs/confidence.md)
  // return the posterior instead, 0 where filled, and leave the next two maps empty.
  FloatMap confidence;
  FloatMap confidence3;     // probability that the error is at most 3 px
  FloatMap expected_error;  // px
  FloatMap posterior;       // 0 to 1: posterior probability of the winning label
  // Candidate labels before inference, and the seeds they started from. Empty unless
  // MatchOptions::keep_labels is set.
  CellLabels labels, seeds;
  // How the right image was corrected before matching; none() if it was not. Maps of the left view
  // belong to the left image as given, those of the right view to the corrected right image.
  Alignment alignment;
};

// Left-right consistency check: sets kOccluded in own.mask where the map of the other view differs
// by more than `threshold` pixels and kOutOfView where the match is outside the other image; clears
// both elsewhere and keeps kFilled. Pixels without a disparity count as occluded. Throws
// Error(kUsage) for maps of different sizes.
NMRF_API void check_consistency(Disparity& own, const Disparity& other, View own_view,
                                float threshold = 1.0f);

}  // namespace nmrf
