// Hole filling: pixels of the left view that are invisible in the right one.
#pragma once

#include <cstdint>

#include "core/thread_pool.h"
#include "matching/median_planes.h"
#include "matching/workspace.h"
#include "nmrf/disparity.h"
#include "nmrf/image.h"
#include "nmrf/map.h"

namespace nmrf {

// The disparity map itself shows which pixels are invisible in the right view: their match lies
// beyond its left border (border occlusion), or behind a surface that is nearer by more than a
// pixel (occlusion). There is nothing to match; weighted medians fill them in.
// - From the last border-occluded pixel of a row leftwards, all border-occluded and occluded pixels
//   take the median of the pixels to their right.
// - Other occluded pixels take the median of the surrounding pixels that are farther away than the
//   occluder.
// Only values for which the pixel would indeed be invisible may fill it; otherwise it is left
// unchanged. Keeps its working memory: nothing is allocated for a size seen before.
class HoleFilling {
 public:
  HoleFilling() = default;
  // Works in this memory instead of its own.
  explicit HoleFilling(MemoryBlock& memory) : workspace_(memory) {}

  // map: px, of the left view (or a mirrored right one), changed in place; what is not finite stays
  // and does not vote. image: 8-bit RGB of the same size. radius: px, up to 16; 0 fills nothing.
  // mask: resized and overwritten: kOccluded and kOutOfView by the map as it came, kFilled where a
  // median was taken. The result does not depend on the number of threads.
  void apply(FloatMap& map, const ImageView& image, int radius, ByteMap& mask, ThreadPool& pool);

 private:
  enum class Holes { kBorder, kOcclusion };
  void reserve();
  void look(const FloatMap& map, ByteMap* mask, ThreadPool& pool);
  std::size_t collect(const FloatMap& map, Holes holes, ThreadPool& pool);
  void schedule(Holes holes, std::size_t count);
  void fill(FloatMap& map, ByteMap& mask, Holes holes, ThreadPool& pool);

  Workspace workspace_;
  PaddedPlanes planes_;
  float *nearest_ = nullptr, *hider_ = nullptr;  // planes: kernels::RightViewPlanes
  std::int32_t* inside_ = nullptr;  // per row: no match of this column or a later one is beyond the
                                    // left edge
  // Holes: per row, by column, their levels, by level.
  std::int32_t *row_columns_ = nullptr, *row_counts_ = nullptr, *levels_ = nullptr,
               *offsets_ = nullptr;
  kernels::MedianPixel *by_column_ = nullptr, *by_level_ = nullptr;
  std::int32_t *last_column_ = nullptr, *last_level_ = nullptr;  // per row, with margins
  float* results_ = nullptr;
  std::int32_t level_count_ = 0;
};

}  // namespace nmrf
