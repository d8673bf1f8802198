// Video: pairs of the same size, each similar to the one before.
#pragma once

#include <memory>

#include "nmrf/matcher.h"

namespace nmrf {

// Carries state from frame to frame. The scale is chosen once and kept while it fits; the
// correction of the right image (MatchOptions::align) is that of the first frame. The previous map,
// warped by the image motion, guides the next one, and where both see the same surface they are
// averaged by confidence: faster than frame by frame, and with less flicker. Cuts are detected.
// The matcher must outlive the sequence. Not thread-safe.
class NMRF_API Sequence {
 public:
  explicit Sequence(const Matcher& matcher, MatchOptions how = {});
  // The result belongs to the sequence and is valid until the next call. A frame of a different
  // size restarts the sequence.
  const Disparity& next(const ImageView& left, const ImageView& right);
  // Same, into a result of the caller.
  void next(const ImageView& left, const ImageView& right, Disparity& result);
  // Forgets previous frames, as after a cut.
  void restart();
  // False if the last frame started anew: the first one, or after a cut.
  bool continued() const;

  ~Sequence();
  Sequence(Sequence&&) noexcept;
  Sequence& operator=(Sequence&&) noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nmrf
