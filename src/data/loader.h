// Batches of samples, prepared by worker threads ahead of the one who needs them.
//
// The order is a function of the seed alone. All processes of a run see one global stream: the
// epochs one after another, each in its own shuffled order. A step takes batch * world samples from
// it, and process `rank` gets the rank-th run of `batch` of these; so two processes with half the
// batch see what one process with the whole batch sees, and a run can be resumed with another
// number of processes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/fields.h"
#include "data/sample_source.h"

namespace nmrf {

enum class BrokenPolicy { kSkip, kFatal };

template <>
struct EnumNames<BrokenPolicy> {
  static constexpr std::array<std::pair<BrokenPolicy, const char*>, 2> values{
      {{BrokenPolicy::kSkip, "skip"}, {BrokenPolicy::kFatal, "fatal"}}};
};

struct LoaderOptions {
  int batch = 1;
  int workers = 2;
  int ahead = 0;
  std::int64_t seed = 1;
  bool shuffle = true;
  BrokenPolicy broken = BrokenPolicy::kSkip;
  int epochs = 0;
  int rank = 0;
  int world = 1;

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& visit) {
    visit("batch", self.batch, "samples a step, of this process");
    visit("workers", self.workers, "threads; 0 = load when asked, without threads");
    visit("ahead", self.ahead, "samples kept ready; 0 = two batches, or twice the workers if more");
    visit("seed", self.seed, "of the order and of the augmentation");
    visit("shuffle", self.shuffle, "a new order every epoch");
    visit("broken", self.broken, "a sample that cannot be read: skip or fatal");
    visit("epochs", self.epochs, "then the stream ends; 0 = never");
    visit("rank", self.rank, "number of this process, from 0");
    visit("world", self.world, "number of processes");
  }
  // Throws Error(kUsage) naming the setting.
  void validate() const;
};

// A place in the global stream: `index` samples of epoch `epoch` are used up, by all processes
// together. Of an endless source the epoch is always 0.
struct LoaderPosition {
  std::int64_t epoch = 0;
  std::int64_t index = 0;
  bool operator==(const LoaderPosition&) const = default;
};

struct LoaderStats {
  std::int64_t samples = 0;  // handed out
  std::int64_t skipped = 0;  // broken ones met
  double wait_seconds = 0;   // next() waited for samples
  double load_seconds = 0;   // spent in the source, summed over the workers
};

class Loader {
 public:
  // Starts at `start`. Throws Error(kUsage) for bad options, Error(kInput) for an empty source.
  Loader(std::shared_ptr<const SampleSource> source, LoaderOptions options,
         LoaderPosition start = {});
  // Ends the workers; waits only for samples being read at this moment.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next batch of this process; empty after the last epoch, where the last batch may be short.
  // A broken sample is reported to the log and replaced by the one that follows it in the epoch's
  // order (drawn with another seed), or thrown when the policy is fatal; so is a long row of broken
  // samples. After an exception every further call throws it again.
  std::vector<Sample> next();

  // Where the following next() begins; hand it to the constructor to resume there.
  LoaderPosition position() const;
  LoaderStats stats() const;

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
};

}  // namespace nmrf
