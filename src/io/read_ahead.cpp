#include "io/read_ahead.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace nmrf {
namespace {

class ReadAhead : public PairSource {
 public:
  ReadAhead(std::unique_ptr<PairSource> source, std::size_t depth, bool newest)
      : source_(std::move(source)),
        depth_(depth),
        newest_(newest),
        total_(source_->total()),
        frame_rate_(source_->frame_rate()),
        reader_([this] { read(); }) {}
  ~ReadAhead() override {
    {
      std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    reader_.join();
  }

  bool next(InputPair& pair) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !ready_.empty() || ended_; });
    if (!ready_.empty()) {
      pair = std::move(ready_.front());
      ready_.pop_front();
      lock.unlock();
      changed_.notify_all();
      return true;
    }
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    return false;
  }
  std::optional<std::int64_t> total() const override { return total_; }
  std::optional<double> frame_rate() const override { return frame_rate_; }

 private:
  void read() {
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stopped_ || newest_ || ready_.size() < depth_; });
        if (stopped_) return;
      }
      InputPair pair;
      bool more = false;
      std::exception_ptr failure;
      try {
        more = source_->next(pair);
      } catch (...) {
        failure = std::current_exception();
      }
      {
        std::lock_guard lock(mutex_);
        if (more && newest_) ready_.clear();
        if (more) ready_.push_back(std::move(pair));
        failure_ = failure;
        ended_ = !more;
      }
      changed_.notify_all();
      if (!more) return;
    }
  }

  std::unique_ptr<PairSource> source_;
  std::size_t depth_;
  bool newest_;  // drops what is not taken in time
  std::optional<std::int64_t> total_;
  std::optional<double> frame_rate_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<InputPair> ready_;
  bool stopped_ = false, ended_ = false;
  std::exception_ptr failure_;
  std::thread reader_;  // last: it uses all of the above
};

}  // namespace

std::unique_ptr<PairSource> read_ahead(std::unique_ptr<PairSource> source, std::size_t depth) {
  return std::make_unique<ReadAhead>(std::move(source), depth, false);
}

std::unique_ptr<PairSource> newest_only(std::unique_ptr<PairSource> source) {
  return std::make_unique<ReadAhead>(std::move(source), 1, true);
}

}  // namespace nmrf
