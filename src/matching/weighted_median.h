// Edge-aware weighted median: moves depth edges to where the colours change.
#pragma once

#include "core/thread_pool.h"
#include "matching/median_planes.h"
#include "nmrf/image.h"
#include "nmrf/map.h"

namespace nmrf {

// A pixel within two pixels of a depth edge (neighbours that differ by more than a pixel) takes the
// weighted median (kernels/window_median.h) of the window around it; slopes and smooth surfaces
// stay as they are. Keeps its working memory: nothing is allocated for a size seen before.
class WeightedMedian {
 public:
  // map: px, of any view, changed in place; what is not finite stays and does not vote. image:
  // 8-bit RGB of the same size. radius: px, up to 16; 0 changes nothing.
  void apply(FloatMap& map, const ImageView& image, int radius, ThreadPool& pool);

 private:
  PaddedPlanes planes_;
  GrowingBuffer<std::uint8_t> edges_;           // [height, width]
  GrowingBuffer<std::uint8_t> near_;            // a row per thread
  GrowingBuffer<kernels::MedianPixel> pixels_;  // a row per thread
  GrowingBuffer<float> results_;                // a row per thread
};

}  // namespace nmrf
