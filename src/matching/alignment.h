// Measures small errors of rectification to a fraction of a pixel.
#pragma once

#include <vector>

#include "core/thread_pool.h"
#include "matching/image_features.h"
#include "nmrf/alignment.h"

namespace nmrf {

// A point at (x, y) of the left grey image, found at (x - dx, y - dy) of the right one.
struct PointMatch {
  double x, y, dx, dy;
};

struct AlignmentEstimate {
  Alignment alignment;  // in pixels of images of the given size
  double error = 0;     // standard error of the vertical correction where it is worst, px
  double spread = 0;    // of the matches about it, px: 1.48 times the median deviation
  int matches = 0;      // that it rests on
  bool sure = false;    // reliable, and small enough for a nearly rectified pair
};

// matches: those that roughly agree on a vertical offset; each is first placed to a fraction of a
// pixel on the grey images, which show images of `width` x `height` at the same or a smaller size.
AlignmentEstimate estimate_alignment(const Grey& left, const Grey& right,
                                     const std::vector<PointMatch>& matches, int width, int height);

// aligned() by the threads of a pool, without allocating for a size seen before. image: 8-bit RGB.
void align(const Image& image, const Alignment& alignment, ThreadPool& pool,
           std::vector<float>& work, Image& result);

}  // namespace nmrf
