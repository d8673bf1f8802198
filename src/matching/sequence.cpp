#include "nmrf/sequence.h"

#include <optional>
#include <utility>

#include "core/thread_pool.h"
#include "matching/frame_motion.h"
#include "matching/temporal_filter.h"

namespace nmrf {
namespace {

// Of the grey levels of two frames, the first moved, and of the motion of blocks beside each other:
// below them a cut lies between the frames. Of 132 cuts between rendered sequences none reaches a
// coherence of 0.4, and no two frames of one sequence are below 0.6.
constexpr double kLeastCorrelation = 0.7, kLeastCoherence = 0.5;

}  // namespace

struct Sequence::State {
  explicit State(const Matcher& used) : matcher(&used), pool(used.threads()) {}
  const Matcher* matcher;
  MatchOptions how;
  std::optional<double> scale;
  int width = 0, height = 0;
  Disparity result;
  FloatMap matched;
  Image frame;  // 8-bit RGB, of the view that is matched
  FrameMotion motion;
  TemporalFilter filter;
  ThreadPool pool;  // for the work between frames; it sleeps while the matcher's own is at work
  bool continued = false;
};

Sequence::Sequence(const Matcher& matcher, MatchOptions how)
    : state_(std::make_unique<State>(matcher)) {
  state_->how = std::move(how);
  if (state_->how.alignment) state_->how.align = false;
}
Sequence::~Sequence() = default;
Sequence::Sequence(Sequence&&) noexcept = default;
Sequence& Sequence::operator=(Sequence&&) noexcept = default;

void Sequence::restart() {
  state_->scale.reset();
  if (state_->how.align) state_->how.alignment.reset();
  state_->motion.restart();
  state_->filter.restart();
}

bool Sequence::continued() const { return state_->continued; }

const Disparity& Sequence::next(const ImageView& left, const ImageView& right) {
  next(left, right, state_->result);
  return state_->result;
}

void Sequence::next(const ImageView& left, const ImageView& right, Disparity& result) {
  State& s = *state_;
  if (left.width != s.width || left.height != s.height) restart();
  s.width = left.width;
  s.height = left.height;
  s.continued = false;
  MatchOptions how = s.how;
  // A factor that the caller chose stays; labels belong to the images as they are.
  const bool free = !s.how.scale && !s.how.keep_labels;
  if (free && s.scale) {
    how.scale = s.scale;
    how.full_size = true;
  }
  to_rgb8(s.how.view == View::kLeft ? left : right, s.frame, "the image");
  s.motion.next(s.frame, s.pool);
  s.continued = s.motion.known() && s.filter.ready(s.width, s.height) &&
                s.motion.correlation() >= kLeastCorrelation &&
                s.motion.coherence() >= kLeastCoherence;
  if (s.continued && how.scale && !s.how.guide) how.guide = &s.filter.moved(s.motion, s.pool);
  try {
    s.matcher->match(left, right, how, result);
  } catch (...) {
    s.motion.restart();
    s.filter.restart();
    throw;
  }
  if (how.guide && !s.how.guide && s.filter.ready(result.map.width(), result.map.height()))
    s.filter.apply(result, s.pool, static_cast<float>(s.how.min_disp));
  if (result.map.width() == s.width && result.map.height() == s.height) {
    if (!how.guide) s.filter.restart();
    s.filter.remember(result);
  }
  if (s.how.align) s.how.alignment = result.alignment;  // of the first frame
  if (!free) return;
  // The scale is chosen by what is matched, which has disparities from 0 on.
  s.matched = result.map;
  for (float& value : s.matched) value -= static_cast<float>(s.how.min_disp);
  s.scale = s.matcher->best_scale(s.matched, s.scale);
}

}  // namespace nmrf
