// Is this a rectified pair, in the right order?
#pragma once

#include <string>
#include <vector>

#include "nmrf/alignment.h"
#include "nmrf/export.h"
#include "nmrf/image.h"

namespace nmrf {

// What corners found in both images say; the warning of unrectified images is the last. Offsets are
// in pixels of the given images.
struct PairCheck {
  std::vector<std::string> warnings;  // sentences for a person; none when nothing looks wrong
  int matches = 0;                    // corners found in both images that agree with each other
  bool conclusive = false;            // enough of them to say anything
  double vertical_offset = 0;         // median of y_left - y_right
  double vertical_rms = 0;     // root mean square of the fitted vertical offset over the image
  double horizontal = 0;       // median of x_left - x_right: the disparity
  double negative_share = 0;   // of the corners that moved, the share with x_left < x_right
  bool swapped = false;        // the right image was given first
  bool not_rectified = false;  // matches do not lie on the same rows
  bool identical = false;      // one image was given twice
  // A small error of rectification, to a fraction of a pixel, and its standard error in px where it
  // is worst. `correctable`: surely there and worth correcting, see MatchOptions::align.
  Alignment alignment;
  double alignment_error = 0;
  bool correctable = false;
};

// Looks for swapped, unrectified or identical images, of one size. Conservative: says nothing when
// the images show too little. Takes a few hundredths of a second. Throws Error(kInput) for images
// of different sizes and as to_rgb8() does.
NMRF_API PairCheck check_pair(const ImageView& left, const ImageView& right);

}  // namespace nmrf
