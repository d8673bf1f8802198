// The two functions of Highway's library that nmrf calls; Debian has that library for its own
// machines only.
#include <hwy/aligned_allocator.h>

#include <cstdlib>

namespace hwy {

void* AllocateAlignedBytes(std::size_t bytes, AllocPtr, void*) {
  return std::aligned_alloc(HWY_ALIGNMENT,
                            (bytes + HWY_ALIGNMENT - 1) / HWY_ALIGNMENT * HWY_ALIGNMENT);
}

void FreeAlignedBytes(const void* pointer, FreePtr, void*) {
  std::free(const_cast<void*>(pointer));
}

}  // namespace hwy
