// Working memory of a thread, kept from call to call.
#pragma once

#include <cstddef>

namespace nmrf::tokens {

// At least `floats` floats, aligned to a cache line, private to the calling thread and valid until
// it asks again. Contents are unspecified.
float* thread_scratch(std::size_t floats);

// Hands out pieces of one block of scratch memory.
class ScratchPieces {
 public:
  explicit ScratchPieces(float* block) : next_(block) {}
  float* take(std::size_t floats) {
    float* piece = next_;
    next_ += (floats + 15) / 16 * 16;
    return piece;
  }

 private:
  float* next_;
};

}  // namespace nmrf::tokens
