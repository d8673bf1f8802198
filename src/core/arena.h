// Memory of a computation whose buffers are the same every time: planned once, then used again and
// again without asking the system.
//
// In planning, the computation runs without touching memory: take() and the end of each Buffer are
// noted, and plan() places buffers whose lives do not overlap on top of each other. Afterwards
// begin() starts a run, in which take() hands out the places in the same order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace nmrf {

// A block of memory aligned to a huge page, on huge pages where the system has them: fresh small
// pages cost as much as a convolution. Contents are unspecified.
class MemoryBlock {
 public:
  MemoryBlock() = default;
  ~MemoryBlock() { release(); }
  MemoryBlock(const MemoryBlock&) = delete;
  MemoryBlock& operator=(const MemoryBlock&) = delete;

  // At least so many bytes; what was there is lost when it grows. Throws std::bad_alloc.
  void reserve(std::size_t bytes);
  void release();
  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

struct ArenaPlan {
  std::vector<std::size_t> offsets;  // bytes, one per take() in order
  std::size_t bytes = 0;
};

class Arena {
 public:
  static constexpr std::size_t kAlignment = 64;

  // `block` must outlive the arena.
  explicit Arena(MemoryBlock& block) : block_(block) {}

  void begin_planning();
  ArenaPlan plan();
  // The plan must outlive the run.
  void begin(const ArenaPlan& plan);
  bool planning() const { return plan_ == nullptr; }

  // Null while planning. `id` stands for the buffer in give_back().
  std::byte* take(std::size_t bytes, std::size_t& id);
  void give_back(std::size_t id);

 private:
  struct Life {
    std::size_t bytes, begin, end;
  };
  MemoryBlock& block_;
  const ArenaPlan* plan_ = nullptr;
  std::vector<Life> lives_;  // while planning
  std::size_t next_ = 0, clock_ = 0;
};

// So many values of an arena, until the end of its scope.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  Buffer(Arena& arena, std::size_t count) : arena_(&arena), count_(count) {
    data_ = reinterpret_cast<T*>(arena.take(count * sizeof(T), id_));
  }
  ~Buffer() { reset(); }
  Buffer(Buffer&& other) noexcept { *this = static_cast<Buffer&&>(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    if (this == &other) return *this;
    reset();
    arena_ = other.arena_;
    data_ = other.data_;
    count_ = other.count_;
    id_ = other.id_;
    other.arena_ = nullptr;
    other.data_ = nullptr;
    return *this;
  }

  void reset() {
    if (arena_) arena_->give_back(id_);
    arena_ = nullptr;
    data_ = nullptr;
  }
  T* data() const { return data_; }  // null while planning
  std::size_t size() const { return count_; }
  T& operator[](std::size_t i) const { return data_[i]; }
  explicit operator bool() const { return arena_ != nullptr; }

 private:
  Arena* arena_ = nullptr;
  T* data_ = nullptr;
  std::size_t count_ = 0, id_ = 0;
};

}  // namespace nmrf
