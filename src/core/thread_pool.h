// The threads of one matcher. Idle threads sleep; nothing outside the object is touched.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace nmrf {

class ThreadPool {
 public:
  // `threads`: the calling one included; at least 1.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls f(begin, end, slot) for pieces of `units`, each of at least `least` of them, and returns
  // when all are done. There are more pieces than threads and each thread takes the next one as
  // soon as it is free, so that one that is held up does not hold up the rest. For work whose
  // result does not depend on where the pieces begin. `slot` tells the threads of one call apart: 0
  // to threads() - 1. Several threads may share work at once; a call from within f runs in place.
  template <class F>
  void share(std::int64_t units, std::int64_t least, const F& f) {
    constexpr std::int64_t kPiecesPerThread = 24;
    if (units <= 0) return;
    const std::int64_t most = inside_ ? 1 : threads();
    const std::int64_t pieces =
        most == 1 ? 1 : std::clamp<std::int64_t>(units / least, 1, most * kPiecesPerThread);
    if (pieces == 1) return f(std::int64_t{0}, units, slot_);
    auto piece = [&](std::int64_t i, int slot) {
      f(units * i / pieces, units * (i + 1) / pieces, slot);
    };
    Job job;
    job.pieces = pieces;
    job.context = &piece;
    job.run = [](void* context, std::int64_t i, int slot) {
      (*static_cast<decltype(piece)*>(context))(i, slot);
    };
    run(job);
  }

 private:
  struct Job {
    void (*run)(void* context, std::int64_t piece, int slot) = nullptr;
    void* context = nullptr;
    std::int64_t pieces = 0;
    std::atomic<std::int64_t> next{0};
    std::atomic<int> users{0};  // workers inside; grows under the mutex only
    std::exception_ptr error;   // the first; under the mutex
  };

  void run(Job& job);
  void work(Job& job, int slot);
  void worker(int slot);
  Job* open_job();  // with pieces left; under the mutex

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_, finished_;
  std::vector<Job*> jobs_;
  std::atomic<std::uint32_t> posted_{0};
  int sleeping_ = 0;  // workers that wait for wake_
  bool stop_ = false;

  static thread_local bool inside_;  // a job
  static thread_local int slot_;
};

}  // namespace nmrf
