#include "train/ops/memory.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <list>
#include <mutex>
#include <new>

namespace nmrf::ops {
namespace {

constexpr std::size_t kHugePage = 2 << 20;
constexpr std::size_t kSmallest = 2 * kHugePage;  // smaller tensors take the usual way

// Sizes are multiples of kHugePage from here on.
void* fresh(std::size_t bytes) {
#if defined(__linux__)
  void* all =
      mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) throw std::bad_alloc();
  auto* begin = static_cast<char*>(all);
  const std::size_t before =
      (kHugePage - reinterpret_cast<std::uintptr_t>(all) % kHugePage) % kHugePage;
  if (before > 0) munmap(begin, before);
  munmap(begin + before + bytes, kHugePage - before);
  madvise(begin + before, bytes, MADV_HUGEPAGE);  // only a wish
  return begin + before;
#else
  void* data = std::aligned_alloc(kHugePage, bytes);
  if (!data) throw std::bad_alloc();
  return data;
#endif
}

void release(void* data, [[maybe_unused]] std::size_t bytes) {
#if defined(__linux__)
  munmap(data, bytes);
#else
  std::free(data);
#endif
}

#if defined(__linux__)
constexpr bool kMovesPages = true;

// The huge page at `from` becomes the one at `to`, contents and all; `from` is no longer mapped. A
// page so moved need not be cleared by the system.
void move_page(char* from, char* to) {
  if (mremap(from, kHugePage, kHugePage, MREMAP_MAYMOVE | MREMAP_FIXED, to) != MAP_FAILED) return;
  munmap(from, kHugePage);
  if (mmap(to, kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
      MAP_FAILED)
    throw std::bad_alloc();
}
#else
constexpr bool kMovesPages = false;
void move_page(char*, char*) {}
#endif

class Blocks {
 public:
  void* take(std::size_t bytes) {
    std::lock_guard lock(mutex_);
    void* data = take_idle(bytes);
    if (!data) data = compose(bytes);
    in_use_ += bytes;
    peak_ = std::max(peak_, in_use_);
    return data;
  }

  void give_back(void* data, std::size_t bytes) {
    std::lock_guard lock(mutex_);
    in_use_ -= bytes;
    idle_bytes_ += bytes;
    idle_.push_back({data, bytes});
    trim(0);
  }

  void begin_pass() {
    std::lock_guard lock(mutex_);
    last_peak_ = peak_;
    peak_ = in_use_;
    trim(0);
  }

  void release_idle() {
    std::lock_guard lock(mutex_);
    peak_ = last_peak_ = in_use_;
    trim(0);
  }

 private:
  struct Block {
    void* data;
    std::size_t bytes;
  };

  // The latest: it may still be in a cache.
  void* take_idle(std::size_t bytes) {
    for (auto block = idle_.rbegin(); block != idle_.rend(); ++block)
      if (block->bytes == bytes) {
        void* data = block->data;
        idle_.erase(std::next(block).base());
        idle_bytes_ -= bytes;
        return data;
      }
    return nullptr;
  }

  // A new block. Where it does not fit under what was in use before, pages of the oldest idle
  // blocks go into it instead of back to the system.
  void* compose(std::size_t bytes) {
    auto* data = static_cast<char*>(fresh(bytes));
    const std::size_t most = std::max(peak_, last_peak_);
    for (std::size_t at = 0;
         kMovesPages && at < bytes && !idle_.empty() && in_use_ + idle_bytes_ + bytes > most;
         at += kHugePage) {
      Block& oldest = idle_.front();
      oldest.bytes -= kHugePage;
      idle_bytes_ -= kHugePage;
      move_page(static_cast<char*>(oldest.data) + oldest.bytes, data + at);
      if (oldest.bytes == 0) idle_.pop_front();
    }
    trim(bytes);  // where pages cannot be moved
    return data;
  }

  // Lets go of the oldest idle blocks until `more` bytes fit under what was in use before.
  void trim(std::size_t more) {
    const std::size_t most = std::max(peak_, last_peak_);
    while (!idle_.empty() && in_use_ + idle_bytes_ + more > most) {
      release(idle_.front().data, idle_.front().bytes);
      idle_bytes_ -= idle_.front().bytes;
      idle_.pop_front();
    }
  }

  std::mutex mutex_;
  std::list<Block> idle_;  // the latest last
  std::size_t in_use_ = 0, idle_bytes_ = 0;
  std::size_t peak_ = 0, last_peak_ = 0;  // most in use at once: in this pass, in the one before
};

// Never destroyed: tensors may outlive static objects.
Blocks& blocks() {
  static Blocks* all = new Blocks;
  return *all;
}

torch::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides) {
  const auto options = torch::TensorOptions(torch::kFloat);
  const auto bytes = static_cast<std::size_t>(c10::multiply_integers(sizes)) * sizeof(float);
  if (bytes < kSmallest) return at::empty_strided(sizes, strides, options);
  const std::size_t rounded = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  return torch::from_blob(
      blocks().take(rounded), sizes, strides,
      [rounded](void* data) { blocks().give_back(data, rounded); }, options);
}

}  // namespace

torch::Tensor empty_floats(at::IntArrayRef sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (std::size_t i = sizes.size(); i-- > 1;)
    strides[i - 1] = strides[i] * std::max<int64_t>(sizes[i], 1);
  return empty_strided(sizes, strides);
}

torch::Tensor empty_map(int64_t batch, int64_t channels, int64_t height, int64_t width) {
  return empty_strided({batch, channels, height, width},
                       {height * width * channels, 1, width * channels, channels});
}

void begin_pass() { blocks().begin_pass(); }

void release_idle() { blocks().release_idle(); }

}  // namespace nmrf::ops
