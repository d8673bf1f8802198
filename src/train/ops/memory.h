// Memory of large tensors: huge pages, and blocks used again. Fresh pages cost as much as a
// convolution.
#pragma once

#include <torch/torch.h>

namespace nmrf::ops {

// A contiguous float tensor on the CPU, contents unspecified.
//
// Blocks of large tensors are kept when they are let go of, for the next of the same size, as long
// as blocks in use and kept ones together take no more than was ever in use at once in this pass
// and the one before: using them again costs no memory. Where that is exceeded, pages of the oldest
// kept blocks become part of the new one (Linux) instead of going back to the system.
torch::Tensor empty_floats(at::IntArrayRef sizes);

// The same as [batch, channels, height, width] with its channels last in memory.
torch::Tensor empty_map(int64_t batch, int64_t channels, int64_t height, int64_t width);

// A forward pass begins: what the pass before the last needed no longer counts.
void begin_pass();

// Gives kept blocks back to the system.
void release_idle();

}  // namespace nmrf::ops
