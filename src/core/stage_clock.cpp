#include "core/stage_clock.h"

namespace nmrf {
namespace {

thread_local StageClock* t_clock = nullptr;

}  // namespace

StageClock::StageClock() { t_clock = this; }
StageClock::~StageClock() { t_clock = nullptr; }

void StageClock::add(const char* stage, double seconds) {
  for (auto& [name, sum] : seconds_)
    if (name == stage) {
      sum += seconds;
      return;
    }
  seconds_.emplace_back(stage, seconds);
}

StageScope::StageScope(const char* stage) : stage_(stage), clock_(t_clock) {
  if (!clock_) return;
  start_ = std::chrono::steady_clock::now();
  outer_ = std::exchange(clock_->inner_, 0.0);
}

StageScope::~StageScope() {
  if (!clock_) return;
  const double all =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  clock_->add(stage_, all - clock_->inner_);
  clock_->inner_ = outer_ + all;
}

}  // namespace nmrf
