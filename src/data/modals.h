// Superpixel-guided disparity downsampling (supplement, section 1): a few modals per cell.
#pragma once

#include <functional>
#include <opencv2/core.hpp>

#include "data/sample.h"

namespace nmrf {

inline constexpr int kModalCell = 8;  // side of a cell, pixels
inline constexpr int kModals = 4;     // most modals per cell

// Reduces every 8 x 8 cell of `disparity` (CV_32FC1, px) to up to four modals, with the help of
// `segments` (CV_32SC1, any ids, same size). Returns CV_32FC4 of ceil(H/8) x ceil(W/8), memory
// [h, w, 4], px, best first, NaN = null. The steps, for each cell by itself:
//   1. The known pixels (finite, > 0) are grouped by segment; cells at the border may be cut.
//   2. Groups are sorted by pixel count, largest first; of equal ones the lower id first. The
//   median
//      of a group represents it: always the lower median (element (n-1)/2 of n in order), which is
//      a disparity that occurs, not a mean across an edge.
//   3. Non-maximum suppression in that order: a group suppresses every later one whose
//      representative is less than 0.5 px away, and takes over its pixels. Representatives do not
//      change meanwhile.
//   4. What remains is sorted by pixel count again (equal ones keep their order). The modals are
//   the
//      medians of the top four, taken anew over all pixels of the merged group.
cv::Mat disparity_modals(const cv::Mat& disparity, const cv::Mat& segments);

// Splits an image (CV_8UC3, BGR) into segments: CV_32SC1 of its size, any ids. Called from several
// threads at once. Training takes superpixels (train/superpixels.h).
using Segmenter = std::function<cv::Mat(const cv::Mat& image)>;

struct SegmentOptions {
  bool use_objects = true;  // object ids where Sample::objects_everywhere says so
  bool both_views = false;  // the right view too, for samples that may be mirrored
};

// Before augmentation: fills sample.segments from the untouched left image (or its object ids) and,
// with both_views and where the right view's truth is known, sample.right_segments from the right
// one. Samples without truth get none. The augmentation moves both along.
void add_segments(Sample& sample, const Segmenter& segmenter, const SegmentOptions& options);

// After augmentation: fills sample.modals from sample.segments and drops the segments. A sample
// without segments (one that never saw add_segments) is split by its object ids; where these are
// not everywhere it is an Error(kUsage). Without truth nothing happens.
void add_modals(Sample& sample);

}  // namespace nmrf
