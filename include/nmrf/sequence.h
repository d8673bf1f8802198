// Video: pairs of one size, each much like the one before.
#pragma once

#include <memory>
#include <optional>

#include "nmrf/matcher.h"

namespace nmrf {

// Keeps what one frame teaches about the next: the scale is chosen once and kept while it fits, so
// that only the first frame is matched twice; the correction of the right image
// (MatchOptions::align) is that of the first frame; results are reused. The matcher must outlive
// it. One thread at a time.
class NMRF_API Sequence {
 public:
  explicit Sequence(const Matcher& matcher, MatchOptions how = {});
  // The result belongs to the sequence and is valid until the next call. A frame of another size
  // starts anew.
  const Disparity& next(const ImageView& left, const ImageView& right);
  // The same into a result of the caller's.
  void next(const ImageView& left, const ImageView& right, Disparity& result);
  // Forgets the frames before, as after a cut.
  void restart();

 private:
  const Matcher* matcher_;
  MatchOptions how_;
  std::optional<double> scale_;
  int width_ = 0, height_ = 0;
  Disparity result_;
};

}  // namespace nmrf
