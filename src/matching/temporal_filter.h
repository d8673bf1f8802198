// Averages disparities along the motion of the image, so that static surfaces do not flicker.
#pragma once

#include <vector>

#include "matching/frame_motion.h"
#include "nmrf/disparity.h"

namespace nmrf {

// Keeps its working memory: nothing is allocated for a size seen before.
class TemporalFilter {
 public:
  void restart() { before_.map.resize(0, 0); }
  // A frame of this size can be continued.
  bool ready(int width, int height) const {
    return before_.map.width() == width && before_.map.height() == height;
  }
  // The map of the frame before, moved to where the image is now: a guide for the next one.
  const FloatMap& moved(const FrameMotion& motion, ThreadPool& pool);
  // After moved(): where the images agree and the new disparity differs by no more than a pixel
  // from the old one, apart from what the surroundings changed by (surfaces come nearer), it
  // becomes the mean of the last frames. Where it differs by more, the one with the smaller
  // expected error stays.
  // `least`: no disparity is below it.
  void apply(Disparity& result, ThreadPool& pool, float least = 0);
  // Remembers a result for the next frame.
  void remember(const Disparity& result);

 private:
  void measure_trend(const Disparity& result, ThreadPool& pool);
  // Interpolated between the blocks of a row of pixels; trend: one value per pixel.
  void trend_of_row(int y, float* trend) const;
  void apply_rows(Disparity& result, float least, int begin, int end, float* trend);

  Disparity before_;            // map, confidence, confidence3, expected_error
  ByteMap averaged_;            // frames in each of its pixels
  FloatMap moved_;              // +infinity where it came from outside
  Map<std::int32_t> from_;      // the pixel it came from; -1: the images differ there
  FloatMap trend_, raw_trend_;  // per block of kTrendBlock: what old disparities have more, px
  ByteMap next_averaged_;
  std::vector<std::vector<float>> differences_;  // per thread
  std::vector<float> trend_rows_;                // per thread, one row
};

}  // namespace nmrf
