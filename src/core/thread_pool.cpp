#include "core/thread_pool.h"

#include <algorithm>
#include <chrono>

namespace nmrf {

thread_local bool ThreadPool::inside_ = false;
thread_local int ThreadPool::slot_ = 0;

namespace {

// Steps of a forward pass follow each other within microseconds; waiting actively for about that
// long saves the way through the kernel, and a neighbour hardly notices.
constexpr auto kActive = std::chrono::microseconds(30);

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

template <class Condition>
bool wait_actively(const Condition& condition) {
  const auto until = std::chrono::steady_clock::now() + kActive;
  do {
    for (int i = 0; i < 32; ++i) {
      if (condition()) return true;
      pause();
    }
  } while (std::chrono::steady_clock::now() < until);
  return condition();
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  jobs_.reserve(64);
  for (int slot = 1; slot < threads; ++slot) workers_.emplace_back([this, slot] { worker(slot); });
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    posted_.fetch_add(1, std::memory_order_release);
  }
  wake_.notify_all();
  for (auto& thread : workers_) thread.join();
}

ThreadPool::Job* ThreadPool::open_job() {
  for (Job* job : jobs_)
    if (job->next.load(std::memory_order_relaxed) < job->pieces) return job;
  return nullptr;
}

void ThreadPool::work(Job& job, int slot) {
  inside_ = true;
  slot_ = slot;
  try {
    for (std::int64_t i = job.next++; i < job.pieces; i = job.next++) job.run(job.context, i, slot);
  } catch (...) {
    std::lock_guard lock(mutex_);
    if (!job.error) job.error = std::current_exception();
    job.next = job.pieces;
  }
  inside_ = false;
  slot_ = 0;
}

void ThreadPool::run(Job& job) {
  bool sleepers;
  {
    std::lock_guard lock(mutex_);
    jobs_.push_back(&job);
    posted_.fetch_add(1, std::memory_order_release);
    sleepers = sleeping_ > 0;
  }
  if (sleepers) wake_.notify_all();
  work(job, 0);
  {
    std::lock_guard lock(mutex_);
    jobs_.erase(std::find(jobs_.begin(), jobs_.end(), &job));
  }
  auto left = [&] { return job.users.load(std::memory_order_acquire) == 0; };
  if (!wait_actively(left)) {
    std::unique_lock lock(mutex_);
    finished_.wait(lock, left);
  } else {
    std::lock_guard lock(mutex_);  // the last worker may still hold it
  }
  if (job.error) std::rethrow_exception(job.error);
}

void ThreadPool::worker(int slot) {
  for (;;) {
    Job* job;
    std::uint32_t seen;
    {
      std::unique_lock lock(mutex_);
      seen = posted_.load(std::memory_order_relaxed);
      job = open_job();
      if (!job) {
        if (stop_) return;
        lock.unlock();
        if (wait_actively([&] { return posted_.load(std::memory_order_acquire) != seen; }))
          continue;
        lock.lock();
        ++sleeping_;
        wake_.wait(lock, [&] { return stop_ || open_job(); });
        --sleeping_;
        continue;
      }
      ++job->users;
    }
    work(*job, slot);
    std::lock_guard lock(mutex_);
    if (--job->users == 0) finished_.notify_all();
  }
}

}  // namespace nmrf
