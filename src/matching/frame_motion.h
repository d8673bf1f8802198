// How the image moved from one frame to the next: block matching from coarse to fine.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/thread_pool.h"
#include "nmrf/image.h"
#include "nmrf/map.h"

namespace nmrf {

// Keeps its working memory: nothing is allocated for a size seen before. The result does not depend
// on the number of threads.
class FrameMotion {
 public:
  static constexpr int kBlock = 8;  // px

  // Takes the next frame, 8-bit RGB. From the second frame of a size on, `motion` is known.
  void next(const Image& frame, ThreadPool& pool);
  // Forgets the frames before.
  void restart() { frames_ = 0; }
  bool known() const { return frames_ > 1; }

  // Where the point of a pixel was in the frame before, relative to it, px.
  struct Vector {
    std::int16_t x = 0, y = 0;
  };
  // Of the block of a pixel.
  Vector at(int y, int x) const {
    return motion_[static_cast<std::size_t>(y / kBlock) * static_cast<std::size_t>(columns_) +
                   static_cast<std::size_t>(x / kBlock)];
  }
  // Mean difference of the grey levels in the 3 x 3 pixels around one and around its former place.
  int difference(int y, int x) const;
  // The same of a whole block, the one that pixel (y, x) begins; beyond the image: of its border.
  using BlockDifferences = std::array<std::array<int, kBlock>, kBlock>;
  void differences(int y, int x, BlockDifferences& result) const;
  // How well the frame before, moved, explains this one: the correlation of the grey levels, at
  // most 1; near 0 for frames that have nothing to do with each other.
  double correlation() const { return correlation_; }
  // Share of the blocks beside each other that moved alike. Blocks of unrelated frames are
  // explained as well, if they are smooth, but each by another motion.
  double coherence() const { return coherence_; }

 private:
  using Pyramid = std::array<ByteMap, 4>;  // grey, each half the size of the one before
  void search(int level, ThreadPool& pool);
  void correlate();
  void compare_neighbours();

  Pyramid now_, before_;
  std::vector<Vector> motion_, coarser_;
  int columns_ = 0, rows_ = 0;  // blocks of motion_
  int frames_ = 0;
  double correlation_ = 0, coherence_ = 0;
};

}  // namespace nmrf
