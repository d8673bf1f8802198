#include "data/loader.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <set>
#include <thread>

#include "data/trees.h"
#include "support/support.h"

namespace nmrf {
namespace {

using namespace std::chrono_literals;

// Samples that say which they are and what they were drawn with.
class FakeSource : public SampleSource {
 public:
  explicit FakeSource(std::optional<std::int64_t> size) : size_(size) {}
  std::optional<std::int64_t> size() const override { return size_; }
  Sample get(std::int64_t index, std::uint64_t draw_seed) const override {
    ++calls_;
    // Uneven times, so that workers overtake each other.
    std::this_thread::sleep_for(std::chrono::microseconds(draw_seed % 700));
    if (broken_.contains(index)) fail(ErrorKind::kInput, "file{}.png: cannot be read", index);
    Sample sample;
    sample.name = fmt::format("{}:{:x}", index, draw_seed);
    return sample;
  }
  std::string describe(std::int64_t index) const override { return fmt::format("fake {}", index); }

  std::set<std::int64_t> broken_;
  mutable std::atomic<int> calls_{0};

 private:
  std::optional<std::int64_t> size_;
};

using Batches = std::vector<std::vector<std::string>>;

std::vector<std::string> names(const std::vector<Sample>& batch) {
  std::vector<std::string> out;
  for (const auto& sample : batch) out.push_back(sample.name);
  return out;
}

Batches take(Loader& loader, int count) {
  Batches out;
  for (int i = 0; i < count; ++i) out.push_back(names(loader.next()));
  return out;
}

std::vector<std::string> flat(const Batches& batches) {
  std::vector<std::string> out;
  for (const auto& batch : batches) out.insert(out.end(), batch.begin(), batch.end());
  return out;
}

std::int64_t index_of(const std::string& name) { return std::stoll(name); }

TEST(Loader, OrderDoesNotDependOnWorkers) {
  auto source = std::make_shared<FakeSource>(17);
  LoaderOptions options;
  options.batch = 3;
  options.workers = 0;
  Loader reference(source, options);
  Batches expected = take(reference, 20);
  for (int workers : {1, 2, 5, 16}) {
    options.workers = workers;
    for (int ahead : {0, 1, 7}) {
      options.ahead = ahead;
      Loader loader(source, options);
      EXPECT_EQ(take(loader, 20), expected) << workers << " workers, ahead " << ahead;
    }
  }
  options.seed = 2;
  Loader other(source, options);
  EXPECT_NE(take(other, 20), expected);
}

TEST(Loader, EveryEpochHasEverySampleOnceInANewOrder) {
  auto source = std::make_shared<FakeSource>(10);
  LoaderOptions options;
  options.batch = 5;
  Loader loader(source, options);
  std::vector<std::vector<std::int64_t>> epochs;
  std::set<std::string> all;
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<std::int64_t> order;
    for (const auto& name : flat(take(loader, 2))) {
      order.push_back(index_of(name));
      all.insert(name);
    }
    EXPECT_EQ(std::set<std::int64_t>(order.begin(), order.end()).size(), 10u);
    epochs.push_back(order);
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
  EXPECT_EQ(all.size(), 30u) << "every draw has a seed of its own";
  options.shuffle = false;
  Loader plain(source, options);
  auto first = flat(take(plain, 2));
  for (std::int64_t i = 0; i < 10; ++i) EXPECT_EQ(index_of(first[static_cast<std::size_t>(i)]), i);
}

TEST(Loader, ResumesAtExactlyTheNextSample) {
  auto source = std::make_shared<FakeSource>(11);
  LoaderOptions options;
  options.batch = 4;
  Loader whole(source, options);
  Batches expected = take(whole, 12);
  for (int stop = 0; stop <= 12; ++stop) {
    LoaderPosition position;
    {
      Loader first(source, options);
      take(first, stop);
      position = first.position();
      EXPECT_EQ(position.epoch * 11 + position.index, stop * 4);
    }
    Loader second(source, options, position);
    EXPECT_EQ(second.position(), position);
    EXPECT_EQ(take(second, 12 - stop), Batches(expected.begin() + stop, expected.end()));
  }
}

TEST(Loader, ProcessesShareOneStream) {
  auto source = std::make_shared<FakeSource>(13);
  LoaderOptions options;
  options.batch = 6;
  Loader single(source, options);
  Batches expected = take(single, 8);
  options.batch = 2;
  options.world = 3;
  std::vector<Batches> shares;
  LoaderPosition position;
  for (int rank = 0; rank < 3; ++rank) {
    options.rank = rank;
    Loader loader(source, options);
    shares.push_back(take(loader, 4));
    if (rank > 0) {
      EXPECT_EQ(position, loader.position()) << "all processes save the same position";
    }
    position = loader.position();
  }
  for (std::size_t step = 0; step < 4; ++step) {
    std::vector<std::string> together;
    for (const auto& share : shares)
      together.insert(together.end(), share[step].begin(), share[step].end());
    EXPECT_EQ(together, expected[step]);
  }
  // And on with one process.
  LoaderOptions one;
  one.batch = 6;
  Loader rest(source, one, position);
  EXPECT_EQ(take(rest, 4), Batches(expected.begin() + 4, expected.end()));
}

TEST(Loader, EpochsEndTheStream) {
  auto source = std::make_shared<FakeSource>(7);
  LoaderOptions options;
  options.batch = 3;
  options.epochs = 2;
  for (int workers : {0, 3}) {
    options.workers = workers;
    Loader loader(source, options);
    Batches batches = take(loader, 7);
    EXPECT_EQ(batches[3].size(), 3u);
    EXPECT_EQ(batches[4].size(), 2u) << "the last one is short";
    EXPECT_TRUE(batches[5].empty());
    EXPECT_TRUE(batches[6].empty());
    EXPECT_EQ(loader.position(), (LoaderPosition{2, 0}));
    EXPECT_EQ(loader.stats().samples, 14);
    Loader again(source, options, loader.position());
    EXPECT_TRUE(again.next().empty());
  }
}

TEST(Loader, EndlessSource) {
  auto source = std::make_shared<FakeSource>(std::nullopt);
  LoaderOptions options;
  options.batch = 2;
  options.workers = 3;
  Loader loader(source, options);
  auto seen = flat(take(loader, 50));
  for (std::int64_t i = 0; i < 100; ++i) EXPECT_EQ(index_of(seen[static_cast<std::size_t>(i)]), i);
  EXPECT_EQ(loader.position(), (LoaderPosition{0, 100}));
  Loader resumed(source, options, {0, 60});
  EXPECT_EQ(flat(take(resumed, 20)), std::vector<std::string>(seen.begin() + 60, seen.end()));
}

TEST(Loader, BrokenSamplesAreReplacedByTheNextInOrder) {
  auto good = std::make_shared<FakeSource>(9);
  LoaderOptions options;
  options.batch = 9;
  options.shuffle = false;
  auto expected = flat([&] {
    Loader loader(good, options);
    return take(loader, 1);
  }());
  auto source = std::make_shared<FakeSource>(9);
  source->broken_ = {3, 4, 8};
  Batches first;
  for (int workers : {0, 1, 4}) {
    options.workers = workers;
    test::Warnings warnings;
    Loader loader(source, options);
    Batches got = take(loader, 2);
    std::vector<std::int64_t> indices;
    for (const auto& name : got[0]) indices.push_back(index_of(name));
    EXPECT_EQ(indices, (std::vector<std::int64_t>{0, 1, 2, 5, 5, 5, 6, 7, 0}));
    for (std::size_t i : {0, 1, 2, 5, 6, 7})
      EXPECT_EQ(got[0][i], expected[i]) << "others unchanged";
    EXPECT_NE(got[0][3], got[0][4]) << "the stand-ins are drawn anew";
    EXPECT_NE(got[0][4], got[0][5]);
    if (first.empty()) first = got;
    EXPECT_EQ(got, first);
    // Workers may be ahead of what was taken: two epochs at least, 3 places and 4 tries each.
    EXPECT_GE(loader.stats().skipped, 8);
    auto texts = warnings.texts();
    EXPECT_EQ(texts.size(), 3u) << "each broken sample is reported once";
    bool named = false;
    for (const auto& text : texts)
      named |= test::contains(text, "fake 3: file3.png: cannot be read");
    EXPECT_TRUE(named);
  }
}

TEST(Loader, FatalErrorsReachNextInOrder) {
  auto source = std::make_shared<FakeSource>(9);
  source->broken_ = {5};
  LoaderOptions options;
  options.batch = 2;
  options.shuffle = false;
  options.broken = BrokenPolicy::kFatal;
  for (int workers : {0, 3}) {
    options.workers = workers;
    Loader loader(source, options);
    EXPECT_EQ(take(loader, 2).size(), 2u) << "what comes before is still handed out";
    for (int i = 0; i < 2; ++i)
      EXPECT_TRUE(
          test::contains(test::error_of(ErrorKind::kInput, [&] { loader.next(); }), "file5.png"));
  }
}

TEST(Loader, AllBrokenEndsWithAnError) {
  auto source = std::make_shared<FakeSource>(30);
  for (std::int64_t i = 0; i < 30; ++i) source->broken_.insert(i);
  LoaderOptions options;
  Loader loader(source, options);
  auto message = test::error_of(ErrorKind::kInput, [&] { loader.next(); });
  EXPECT_TRUE(test::contains(message, "16 samples in a row"));
}

class HungrySource : public FakeSource {
 public:
  HungrySource() : FakeSource(4) {}
  Sample get(std::int64_t, std::uint64_t) const override { throw std::bad_alloc(); }
};

TEST(Loader, MemoryShortageIsNotABrokenSample) {
  Loader loader(std::make_shared<HungrySource>(), LoaderOptions{});
  EXPECT_THROW(loader.next(), std::bad_alloc);
}

// Holds every get() until released.
class GatedSource : public FakeSource {
 public:
  GatedSource() : FakeSource(100) {}
  Sample get(std::int64_t index, std::uint64_t seed) const override {
    {
      std::unique_lock lock(mutex_);
      gate_.wait(lock, [&] { return open_; });
    }
    return FakeSource::get(index, seed);
  }
  void open() {
    {
      std::lock_guard lock(mutex_);
      open_ = true;
    }
    gate_.notify_all();
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable gate_;
  bool open_ = false;
};

TEST(Loader, WhatIsAheadIsBounded) {
  auto source = std::make_shared<FakeSource>(1000);
  LoaderOptions options;
  options.batch = 2;
  options.workers = 4;
  options.ahead = 6;
  Loader loader(source, options);
  loader.next();
  // The queue is filled while nobody asks; a busy machine may need a while.
  for (int i = 0; i < 1000 && source->calls_ < 2 + 6; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(source->calls_, 2 + 6);
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(source->calls_, 2 + 6) << "and no more than that";
}

TEST(Loader, EndsWithWorkersBlocked) {
  auto source = std::make_shared<FakeSource>(1000);
  LoaderOptions options;
  options.workers = 8;
  options.ahead = 2;
  {
    Loader full(source, options);  // all blocked on the full queue
    std::this_thread::sleep_for(20ms);
  }
  {
    Loader unused(source, options);  // ended at once
  }
  auto gated = std::make_shared<GatedSource>();
  auto loader = std::make_unique<Loader>(gated, options);
  std::thread opener([&] {
    std::this_thread::sleep_for(30ms);
    gated->open();
  });
  loader.reset();  // in the middle of get()
  opener.join();
  EXPECT_LE(gated->calls_, 2);
}

TEST(Loader, MeasuresWaiting) {
  auto gated = std::make_shared<GatedSource>();
  LoaderOptions options;
  Loader loader(gated, options);
  std::atomic<bool> asked{false};
  std::thread opener([&] {
    while (!asked) std::this_thread::yield();
    std::this_thread::sleep_for(200ms);
    gated->open();
  });
  asked = true;
  loader.next();
  opener.join();
  EXPECT_GE(loader.stats().wait_seconds, 0.02);
  EXPECT_GT(loader.stats().load_seconds, 0.0);
  EXPECT_EQ(loader.stats().samples, 1);
}

TEST(Loader, BadOptionsAndPositions) {
  auto source = std::make_shared<FakeSource>(5);
  auto refuse = [&](const char* assignment) {
    LoaderOptions options;
    set_field(options, assignment);
    return test::error_of(ErrorKind::kUsage, [&] { Loader loader(source, options); });
  };
  EXPECT_TRUE(test::contains(refuse("batch=0"), "batch"));
  EXPECT_TRUE(test::contains(refuse("workers=-1"), "workers"));
  EXPECT_TRUE(test::contains(refuse("rank=1"), "rank"));
  LoaderOptions options;
  for (LoaderPosition position :
       {LoaderPosition{0, 6}, {0, -1}, {-1, 0}, {std::int64_t{1} << 62, 0}})
    EXPECT_TRUE(test::contains(
        test::error_of(ErrorKind::kUsage, [&] { Loader loader(source, options, position); }),
        "cannot start"));
  test::error_of(ErrorKind::kInput,
                 [&] { Loader loader(std::make_shared<FakeSource>(0), options); });
  test::error_of(ErrorKind::kUsage, [&] { Loader loader(nullptr, options); });
}

// The whole way: files, augmentation, workers, a broken file.
TEST(DatasetSource, RepeatsWhateverTheNumberOfWorkers) {
  test::TempFolder folder;
  std::string list;
  for (int i = 0; i < 6; ++i) {
    test::put_image(folder / fmt::format("l{}.png", i), i, 50, 40);
    test::put_image(folder / fmt::format("r{}.png", i), 10 + i, 50, 40);
    test::put_pfm(folder / fmt::format("d{}.pfm", i), i + 1, 50, 40);
    list += fmt::format("l{0}.png r{0}.png d{0}.pfm\n", i);
  }
  write_file(folder / "list.txt", list);
  write_file(folder / "d4.pfm", "Pf\n50 40\n-1\n");
  DatasetOptions dataset_options;
  dataset_options.name = "list";
  dataset_options.list = (folder / "list.txt").string();
  AugmentOptions augment_options;
  augment_options.crop_width = 32;
  augment_options.crop_height = 24;
  auto source = std::make_shared<DatasetSource>(open_dataset(dataset_options), augment_options);
  test::Warnings warnings;
  std::vector<Sample> reference;
  for (int workers : {0, 2, 6}) {
    LoaderOptions options;
    options.batch = 4;
    options.workers = workers;
    Loader loader(source, options);
    std::vector<Sample> got;
    for (int i = 0; i < 6; ++i)
      for (auto& sample : loader.next()) got.push_back(std::move(sample));
    ASSERT_EQ(got.size(), 24u);
    if (reference.empty()) reference = got;
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].name, reference[i].name);
      EXPECT_EQ(got[i].left.size(), cv::Size(32, 24));
      EXPECT_EQ(cv::norm(got[i].left, reference[i].left, cv::NORM_INF), 0);
      EXPECT_EQ(cv::norm(got[i].right, reference[i].right, cv::NORM_INF), 0);
      EXPECT_EQ(cv::countNonZero(got[i].disparity != reference[i].disparity), 0);
    }
  }
  ASSERT_FALSE(warnings.texts().empty());
  EXPECT_TRUE(test::contains(warnings.texts()[0], "d4.pfm"));
  EXPECT_TRUE(test::contains(warnings.texts()[0], "l4"));
}

}  // namespace
}  // namespace nmrf
