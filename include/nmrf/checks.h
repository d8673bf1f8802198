// Is this a rectified pair, in the right order?
#pragma once

#include <string>
#include <vector>

#include "nmrf/alignment.h"
#include "nmrf/export.h"
#include "nmrf/image.h"

namespace nmrf {

// Result of comparing corners matched between the two images. Offsets are in pixels of the given
// images. The warning about unrectified images comes last.
struct PairCheck {
  std::vector<std::string> warnings;  // full sentences; none if nothing looks wrong
  int matches = 0;                    // consistent corner matches
  bool conclusive = false;            // enough matches for a verdict
  double vertical_offset = 0;         // median of y_left - y_right
  double vertical_rms = 0;            // RMS of the fitted vertical offset over the image
  double horizontal = 0;              // median of x_left - x_right: the disparity
  double negative_share = 0;          // share of moving corners with x_left < x_right
  bool swapped = false;               // the right image was given first
  bool not_rectified = false;         // matches do not lie on the same rows
  bool unrelated = false;             // enough corners, but hardly any match: no pair of one scene
  bool identical = false;             // the same image was given twice
  // A small rectification error, to a fraction of a pixel, and its largest standard error in px
  // over the image. `correctable`: reliable and worth correcting, see MatchOptions::align.
  Alignment alignment;
  double alignment_error = 0;
  bool correctable = false;
};

// Detects swapped, unrectified and identical images. Conservative: no verdict if the images have
// too little texture. Takes a few hundredths of a second. Throws Error(kInput) for images of
// different sizes and as to_rgb8() does.
NMRF_API PairCheck check_pair(const ImageView& left, const ImageView& right);

}  // namespace nmrf
