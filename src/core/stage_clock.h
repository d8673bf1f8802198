// Wall time by stage, for whoever measures.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace nmrf {

// Seconds spent in each stage that ran on this thread while the clock was alive. One clock at a
// time a thread; without one, a StageScope costs a test of a pointer.
class StageClock {
 public:
  StageClock();
  ~StageClock();
  StageClock(const StageClock&) = delete;
  StageClock& operator=(const StageClock&) = delete;

  // In the order in which the stages were first left.
  const std::vector<std::pair<std::string, double>>& seconds() const { return seconds_; }

 private:
  friend class StageScope;
  void add(const char* stage, double seconds);
  std::vector<std::pair<std::string, double>> seconds_;
  double inner_ = 0;  // of the scopes that ended inside the present one
};

// Counts the time of a scope for a stage, without that of scopes inside it.
class StageScope {
 public:
  explicit StageScope(const char* stage);
  ~StageScope();
  StageScope(const StageScope&) = delete;
  StageScope& operator=(const StageScope&) = delete;

 private:
  const char* stage_;
  StageClock* clock_;
  std::chrono::steady_clock::time_point start_;
  double outer_ = 0;
};

// The result of `run`, its time counted for a stage.
template <class Run>
auto in_stage(const char* stage, Run&& run) {
  StageScope scope(stage);
  return run();
}

}  // namespace nmrf
