#include "kernels/scratch.h"

#include <hwy/aligned_allocator.h>

namespace nmrf::tokens {

float* thread_scratch(std::size_t floats) {
  thread_local hwy::AlignedFreeUniquePtr<float[]> block;
  thread_local std::size_t size = 0;
  if (size < floats) {
    block = hwy::AllocateAligned<float>(floats);
    size = floats;
  }
  return block.get();
}

}  // namespace nmrf::tokens
