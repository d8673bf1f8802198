// Edge-aware weighted median: moves depth edges to where the colours change.
#pragma once

#include "core/thread_pool.h"
#include "matching/median_planes.h"
#include "matching/workspace.h"
#include "nmrf/image.h"
#include "nmrf/map.h"

namespace nmrf {

// A pixel within two pixels of a depth edge (neighbours that differ by more than a pixel) takes the
// weighted median (kernels/window_median.h) of the window around it; slopes and smooth surfaces
// stay as they are. Keeps its working memory: nothing is allocated for a size seen before.
class WeightedMedian {
 public:
  WeightedMedian() = default;
  // Works in this memory instead of its own.
  explicit WeightedMedian(MemoryBlock& memory) : workspace_(memory) {}

  // map: px, of any view, changed in place; what is not finite stays and does not vote. image:
  // 8-bit RGB of the same size. radius: px, up to 16; 0 changes nothing.
  void apply(FloatMap& map, const ImageView& image, int radius, ThreadPool& pool);

 private:
  Workspace workspace_;
  PaddedPlanes planes_;
  std::uint8_t* edges_ = nullptr;           // [height, width]
  std::uint8_t* near_ = nullptr;            // a row per thread
  kernels::MedianPixel* pixels_ = nullptr;  // a row per thread
  float* results_ = nullptr;                // a row per thread
};

}  // namespace nmrf
