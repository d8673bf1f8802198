#include "ops/map_memory.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <cstdlib>
#include <list>
#include <mutex>
#include <new>

namespace nmrf::ops::conv {
namespace {

constexpr std::size_t kHugePage = 2 << 20;
constexpr std::size_t kSmallest = 2 * kHugePage;  // smaller maps take the usual way
constexpr std::size_t kIdle = 64 << 20;           // bytes kept of maps without gradients
constexpr std::size_t kIdleSaved = 1 << 30;       // and of those of training

// Blocks nobody uses, the latest last.
class Blocks {
 public:
  void* take(std::size_t bytes) {
    {
      std::lock_guard lock(mutex_);
      for (auto block = idle_.rbegin(); block != idle_.rend(); ++block)
        if (block->bytes == bytes) {
          void* data = block->data;
          idle_.erase(std::next(block).base());
          total_ -= bytes;
          return data;
        }
    }
    void* data = std::aligned_alloc(kHugePage, bytes);
    if (!data) throw std::bad_alloc();
#if defined(__linux__)
    madvise(data, bytes, MADV_HUGEPAGE);  // only a wish
#endif
    return data;
  }

  void give_back(void* data, std::size_t bytes, std::size_t most) {
    std::lock_guard lock(mutex_);
    idle_.push_back({data, bytes});
    total_ += bytes;
    while (total_ > most) {
      std::free(idle_.front().data);
      total_ -= idle_.front().bytes;
      idle_.pop_front();
    }
  }

 private:
  struct Block {
    void* data;
    std::size_t bytes;
  };
  std::mutex mutex_;
  std::list<Block> idle_;
  std::size_t total_ = 0;
};

// Never destroyed: tensors may outlive static objects.
Blocks& blocks() {
  static Blocks* all = new Blocks;
  return *all;
}

}  // namespace

torch::Tensor empty_map(int64_t batch, int64_t channels, int64_t height, int64_t width,
                        bool saved) {
  const auto options = torch::TensorOptions(torch::kFloat);
  const int64_t count = batch * channels * height * width;
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
  if (bytes < kSmallest)
    return torch::empty({batch, channels, height, width},
                        options.memory_format(torch::MemoryFormat::ChannelsLast));
  const std::size_t rounded = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  const std::size_t most = saved ? kIdleSaved : kIdle;
  return torch::from_blob(
      blocks().take(rounded), {batch, channels, height, width},
      {height * width * channels, 1, width * channels, channels},
      [rounded, most](void* data) { blocks().give_back(data, rounded, most); }, options);
}

}  // namespace nmrf::ops::conv
