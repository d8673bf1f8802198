// Memory of large maps: huge pages, and blocks used again. Fresh pages cost as much as a
// convolution.
#pragma once

#include <torch/torch.h>

namespace nmrf::ops::conv {

// A tensor [batch, channels, height, width] of float with its channels last in memory, contents
// unspecified. Released memory of some maps is kept for the next ones: little in general, more
// where `saved` says that the map lives until a backward pass.
torch::Tensor empty_map(int64_t batch, int64_t channels, int64_t height, int64_t width,
                        bool saved = false);

}  // namespace nmrf::ops::conv
