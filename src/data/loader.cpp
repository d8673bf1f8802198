#include "data/loader.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <new>
#include <numeric>
#include <system_error>
#include <thread>
#include <unordered_set>

#include "core/check.h"
#include "core/log.h"
#include "core/rng.h"

namespace nmrf {
namespace {

using Order = std::shared_ptr<const std::vector<std::int64_t>>;
using Clock = std::chrono::steady_clock;

// So many broken samples in a row mean that the disk is gone, not a file.
constexpr std::int64_t kMaxBrokenInRow = 16;
constexpr std::int64_t kEndless = std::numeric_limits<std::int64_t>::max() / 4;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

void LoaderOptions::validate() const {
  auto need = [](bool ok, const char* setting, std::int64_t value, const char* expected) {
    check(ok, ErrorKind::kUsage, "setting '{}' of the loader is {}; expected {}", setting, value,
          expected);
  };
  need(batch >= 1 && batch <= 65536, "batch", batch, "1 to 65536");
  need(workers >= 0 && workers <= 1024, "workers", workers, "0 to 1024");
  need(ahead >= 0 && ahead <= 65536, "ahead", ahead, "0 to 65536");
  need(epochs >= 0, "epochs", epochs, "0 or more");
  need(world >= 1 && world <= 1 << 20, "world", world, "1 or more");
  need(rank >= 0 && rank < world, "rank", rank, "0 or more and less than world");
}

// Slots are numbered in the order in which this process uses them. A worker claims the next number,
// makes its sample and puts it into a ring; next() takes them out in order. A slot is claimed only
// when the ring has room for it, so that what is ahead stays bounded.
class Loader::Engine {
 public:
  Engine(std::shared_ptr<const SampleSource> source, LoaderOptions options, LoaderPosition start);
  ~Engine();
  std::vector<Sample> next();
  LoaderPosition position() const;
  LoaderStats stats() const;

 private:
  struct Slot {
    bool ready = false;
    Sample sample;
    std::exception_ptr error;
  };
  // What a slot holds: a place in the stream.
  struct Place {
    std::int64_t epoch = 0;
    std::int64_t index = 0;
    Order order;  // null for an endless source
  };

  std::int64_t stream_position(std::int64_t slot) const;
  Place place_of(std::int64_t slot);
  Sample make(const Place& place);
  void report(std::int64_t index, const std::string& reason);
  void work();

  const std::shared_ptr<const SampleSource> source_;
  const LoaderOptions options_;
  const std::int64_t size_;  // of an epoch; kEndless
  std::int64_t start_ = 0;   // in the global stream
  std::int64_t end_;         // of the global stream

  mutable std::mutex mutex_;
  std::condition_variable ready_, room_;
  std::vector<Slot> ring_;
  std::int64_t claimed_ = 0, used_ = 0, batches_ = 0;
  bool stop_ = false;
  std::exception_ptr failed_;
  std::vector<std::pair<std::int64_t, Order>> orders_;  // of the epochs in use
  std::unordered_set<std::int64_t> reported_;
  LoaderStats stats_;
  std::vector<std::thread> workers_;
};

Loader::Engine::Engine(std::shared_ptr<const SampleSource> source, LoaderOptions options,
                       LoaderPosition start)
    : source_(std::move(source)), options_(options), size_(source_->size().value_or(kEndless)) {
  check(size_ > 0, ErrorKind::kInput, "the loader was given a source without samples");
  check(
      start.epoch >= 0 && start.index >= 0 && (size_ != kEndless || start.epoch == 0) &&
          start.epoch < kEndless / size_ && start.index <= size_,
      ErrorKind::kUsage,
      "the loader cannot start at sample {} of epoch {}: an epoch has {} samples. Was the data set "
      "changed since the position was saved?",
      start.index, start.epoch, size_);
  start_ = size_ == kEndless ? start.index : start.epoch * size_ + start.index;
  end_ = options_.epochs > 0 && size_ != kEndless ? options_.epochs * size_ : kEndless;
  int ahead =
      options_.ahead > 0 ? options_.ahead : std::max(2 * options_.batch, 2 * options_.workers);
  ring_.resize(static_cast<std::size_t>(std::max(ahead, options_.batch)));
  try {
    for (int i = 0; i < options_.workers; ++i) workers_.emplace_back([this] { work(); });
  } catch (const std::system_error& error) {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    room_.notify_all();
    for (auto& worker : workers_) worker.join();
    fail(ErrorKind::kFailure, "{} loader threads cannot be started: {}", options_.workers,
         error.what());
  }
}

Loader::Engine::~Engine() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  room_.notify_all();
  for (auto& worker : workers_) worker.join();
}

std::int64_t Loader::Engine::stream_position(std::int64_t slot) const {
  std::int64_t step = slot / options_.batch, within = slot % options_.batch;
  return start_ + (step * options_.world + options_.rank) * options_.batch + within;
}

// Called under the lock.
Loader::Engine::Place Loader::Engine::place_of(std::int64_t slot) {
  std::int64_t position = stream_position(slot);
  if (size_ == kEndless) return {0, position, nullptr};
  std::int64_t epoch = position / size_;
  for (const auto& [known, order] : orders_)
    if (known == epoch) return {epoch, position % size_, order};
  auto order = std::make_shared<std::vector<std::int64_t>>(static_cast<std::size_t>(size_));
  std::iota(order->begin(), order->end(), std::int64_t{0});
  if (options_.shuffle) {
    constexpr std::uint64_t kOrderStream = 1;  // apart from the draws of the samples
    Rng rng(mix_seed({static_cast<std::uint64_t>(options_.seed), kOrderStream,
                      static_cast<std::uint64_t>(epoch)}));
    rng.shuffle(*order);
  }
  // Slots are claimed in order, so an older epoch is not asked for again.
  orders_.clear();
  orders_.emplace_back(epoch, order);
  return {epoch, position % size_, order};
}

void Loader::Engine::report(std::int64_t index, const std::string& reason) {
  bool first = false;
  {
    std::lock_guard lock(mutex_);
    ++stats_.skipped;
    first = reported_.insert(index).second;
  }
  if (first)
    log_warning("skipped a broken sample, the next one takes its place: {}: {}",
                source_->describe(index), reason);
}

Sample Loader::Engine::make(const Place& place) {
  constexpr std::uint64_t kDrawStream = 2;
  const std::int64_t tries = std::min(size_, kMaxBrokenInRow);
  for (std::int64_t attempt = 0;; ++attempt) {
    std::int64_t at = place.index + attempt;
    std::int64_t index = place.order ? (*place.order)[static_cast<std::size_t>(at % size_)] : at;
    std::uint64_t seed =
        mix_seed({static_cast<std::uint64_t>(options_.seed), kDrawStream,
                  static_cast<std::uint64_t>(place.epoch), static_cast<std::uint64_t>(index),
                  static_cast<std::uint64_t>(attempt)});
    try {
      return source_->get(index, seed);
    } catch (const std::bad_alloc&) {
      throw;  // says nothing about the sample
    } catch (const std::exception& error) {
      if (options_.broken == BrokenPolicy::kFatal) throw;
      report(index, error.what());
      check(attempt + 1 < tries, ErrorKind::kInput,
            "{} samples in a row cannot be read, the last is {}: {}", attempt + 1,
            source_->describe(index), error.what());
    }
  }
}

void Loader::Engine::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    auto capacity = static_cast<std::int64_t>(ring_.size());
    room_.wait(lock, [&] { return stop_ || claimed_ < used_ + capacity; });
    if (stop_ || stream_position(claimed_) >= end_) return;
    std::int64_t slot = claimed_++;
    Slot made;
    double seconds = 0;
    try {
      Place place = place_of(slot);
      lock.unlock();
      auto begin = Clock::now();
      made.sample = make(place);
      seconds = seconds_since(begin);
    } catch (...) {
      made.error = std::current_exception();
    }
    if (!lock.owns_lock()) lock.lock();
    made.ready = true;
    stats_.load_seconds += seconds;
    ring_[static_cast<std::size_t>(slot % capacity)] = std::move(made);
    ready_.notify_one();
  }
}

std::vector<Sample> Loader::Engine::next() {
  std::vector<Sample> batch;
  std::unique_lock lock(mutex_);
  if (failed_) std::rethrow_exception(failed_);
  const std::int64_t first = batches_ * options_.batch;
  auto begin = Clock::now();
  for (std::int64_t slot = first; slot < first + options_.batch; ++slot) {
    if (stream_position(slot) >= end_) break;
    try {
      if (workers_.empty()) {
        Place place = place_of(slot);
        lock.unlock();
        auto loading = Clock::now();
        batch.push_back(make(place));
        double seconds = seconds_since(loading);
        lock.lock();
        stats_.load_seconds += seconds;
      } else {
        Slot& source =
            ring_[static_cast<std::size_t>(slot % static_cast<std::int64_t>(ring_.size()))];
        ready_.wait(lock, [&] { return source.ready; });
        Slot taken = std::exchange(source, Slot{});
        ++used_;
        room_.notify_one();
        if (taken.error) std::rethrow_exception(taken.error);
        batch.push_back(std::move(taken.sample));
      }
    } catch (...) {
      if (!lock.owns_lock()) lock.lock();
      failed_ = std::current_exception();
      throw;
    }
  }
  stats_.wait_seconds += seconds_since(begin);
  stats_.samples += static_cast<std::int64_t>(batch.size());
  ++batches_;
  return batch;
}

LoaderPosition Loader::Engine::position() const {
  std::lock_guard lock(mutex_);
  std::int64_t position = start_ + batches_ * options_.batch * options_.world;
  position = std::min(position, std::max(end_, start_));
  if (size_ == kEndless) return {0, position};
  return {position / size_, position % size_};
}

LoaderStats Loader::Engine::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

Loader::Loader(std::shared_ptr<const SampleSource> source, LoaderOptions options,
               LoaderPosition start) {
  options.validate();
  check(source != nullptr, ErrorKind::kUsage, "the loader was given no source");
  engine_ = std::make_unique<Engine>(std::move(source), options, start);
}

Loader::~Loader() = default;
std::vector<Sample> Loader::next() { return engine_->next(); }
LoaderPosition Loader::position() const { return engine_->position(); }
LoaderStats Loader::stats() const { return engine_->stats(); }

}  // namespace nmrf
