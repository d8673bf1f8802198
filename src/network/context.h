// What every stage of a forward pass works with: threads, planned memory, and what is noted on the
// way.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/arena.h"
#include "core/stage_clock.h"
#include "core/thread_pool.h"
#include "kernels/label_feature.h"

namespace nmrf {

// Floating-point operations of one stage, by kind; a multiplication with its addition counts two.
struct StageCost {
  std::string name;
  double convolution = 0, linear = 0, attention = 0, other = 0;
  double total() const { return convolution + linear + attention + other; }
};

// Receives intermediate results: [height, width, count, channels] values, or for maps
// [height, width, channels] with count 0.
struct TraceShape {
  std::int64_t height = 0, width = 0, count = 0, channels = 0;
};
class Trace {
 public:
  virtual ~Trace() = default;
  virtual void record(const std::string& name, const TraceShape& shape, const float* values) = 0;
};

// A map with the channels of a pixel side by side: [height, width, channels].
struct FeatureMap {
  Buffer<float> values;
  std::int64_t height = 0, width = 0, channels = 0;

  std::int64_t pixels() const { return height * width; }
  kernels::PixelMap view() const { return {values.data(), 0, width * channels, channels}; }
};

class Context {
 public:
  Context(Arena& arena, ThreadPool& pool) : arena_(arena), pool_(&pool) {}
  // Only plans a pass of so many threads: memory and arithmetic are counted, nothing is computed.
  Context(Arena& arena, int threads) : arena_(arena), pool_(nullptr), planned_threads_(threads) {}

  bool planning() const { return arena_.planning(); }
  // Threads that share the work; while planning, those of the run that is planned for.
  int threads() const { return pool_ ? pool_->threads() : planned_threads_; }

  // ThreadPool::share(); nothing while planning.
  template <class F>
  void share(std::int64_t units, std::int64_t least, const F& f) {
    if (!planning()) pool_->share(units, least, f);
  }

  template <class T = float>
  Buffer<T> take(std::int64_t count) {
    return Buffer<T>(arena_, static_cast<std::size_t>(count));
  }
  FeatureMap map(std::int64_t height, std::int64_t width, std::int64_t channels) {
    return {take(height * width * channels), height, width, channels};
  }

  // Arithmetic of the present stage; counted while planning.
  void count(double StageCost::*kind, double operations) {
    if (planning()) costs_[stage_].*kind += operations;
  }
  std::vector<StageCost>& costs() { return costs_; }

  // Intermediate results go to `trace`, if there is one.
  void trace_to(Trace* trace) { trace_ = trace; }
  bool tracing() const { return trace_ != nullptr && !planning(); }
  void record(const std::string& name, const TraceShape& shape, const float* values) {
    if (tracing()) trace_->record(name, shape, values);
  }
  void record(const std::string& name, const FeatureMap& map) {
    record(name, {map.height, map.width, 0, map.channels}, map.values.data());
  }

  // Called as each stage begins; may throw to cancel the pass.
  void notify(std::function<void(const char* stage)> on_stage) { on_stage_ = std::move(on_stage); }

 private:
  friend class Stage;
  void enter(const char* stage);

  Arena& arena_;
  ThreadPool* pool_;
  int planned_threads_ = 1;
  Trace* trace_ = nullptr;
  std::function<void(const char*)> on_stage_;
  std::vector<StageCost> costs_;
  std::size_t stage_ = 0;  // the present one, in costs_
};

// Time, arithmetic and progress of a scope count for a stage. Stages do not nest.
class Stage {
 public:
  Stage(Context& context, const char* name) : clock_(name) { context.enter(name); }

 private:
  StageScope clock_;
};

}  // namespace nmrf
