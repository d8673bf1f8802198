#include "nmrf/sequence.h"

#include <utility>

namespace nmrf {

Sequence::Sequence(const Matcher& matcher, MatchOptions how)
    : matcher_(&matcher), how_(std::move(how)) {
  if (how_.alignment) how_.align = false;
}

void Sequence::restart() {
  scale_.reset();
  if (how_.align) how_.alignment.reset();
}

const Disparity& Sequence::next(const ImageView& left, const ImageView& right) {
  next(left, right, result_);
  return result_;
}

void Sequence::next(const ImageView& left, const ImageView& right, Disparity& result) {
  if (left.width != width_ || left.height != height_) restart();
  width_ = left.width;
  height_ = left.height;
  // A factor that the caller chose stays; labels belong to the images as they are.
  const bool free = !how_.scale && !how_.keep_labels;
  if (!free || !scale_) {
    matcher_->match(left, right, how_, result);
  } else {
    MatchOptions how = how_;
    how.scale = scale_;
    how.full_size = true;
    matcher_->match(left, right, how, result);
  }
  if (how_.align) how_.alignment = result.alignment;  // of the first frame
  if (free) scale_ = matcher_->best_scale(result.map, scale_);
}

}  // namespace nmrf
