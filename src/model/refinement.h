// Disparity refinement on the fine grid (paper section 3.4): one label a pixel, neighbour edges
// only.
#pragma once

#include <torch/torch.h>

#include "model/inference.h"

namespace nmrf {

// `refinement` with the sizes and switches of the options.
MessagePassing make_refinement(const ModelOptions& options);

}  // namespace nmrf
