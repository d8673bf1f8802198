// Video: pairs of one size, each much like the one before.
#pragma once

#include <memory>

#include "nmrf/matcher.h"

namespace nmrf {

// Keeps what one frame teaches about the next. The scale is chosen once and kept while it fits; the
// correction of the right image (MatchOptions::align) is that of the first frame. The
// map before, moved along with the image, guides the next one, and where both tell of the same
// surface they are averaged by how far each can be trusted: faster than frame by frame, and without
// flicker. A cut is noticed by the images. The matcher must outlive it. One thread at a time.
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
  // Whether the last frame was found to follow the one before.
  bool continued() const;

  ~Sequence();
  Sequence(Sequence&&) noexcept;
  Sequence& operator=(Sequence&&) noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nmrf
