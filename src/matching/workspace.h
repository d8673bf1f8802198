// The arrays of one step of a match, at the front of a block of memory that other steps use before
// and after it. A step of a size seen before allocates nothing.
#pragma once

#include <cstddef>

#include "core/arena.h"

namespace nmrf {

class Workspace {
 public:
  Workspace() : block_(own_) {}
  // `block` must outlive the workspace.
  explicit Workspace(MemoryBlock& block) : block_(block) {}

  template <class T>
  struct Wanted {
    T*& array;
    std::size_t count;
    std::size_t bytes() const {
      return (count * sizeof(T) + Arena::kAlignment - 1) / Arena::kAlignment * Arena::kAlignment;
    }
  };

  // Sets all arrays; contents are unspecified, and what was in the block before is lost.
  template <class... T>
  void lay_out(const Wanted<T>&... wanted) {
    block_.reserve((wanted.bytes() + ...));
    std::byte* at = block_.data();
    ((wanted.array = reinterpret_cast<T*>(at), at += wanted.bytes()), ...);
  }

 private:
  MemoryBlock own_;
  MemoryBlock& block_;
};

template <class T>
Workspace::Wanted<T> wanted(T*& array, std::size_t count) {
  return {array, count};
}

}  // namespace nmrf
