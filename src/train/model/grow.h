// Grows a trained network into a larger one that computes the same map, so that training goes on
// where the smaller one has no room left.
#pragma once

#include <cstdint>
#include <string>

#include "network/options.h"
#include "train/model/nmrf.h"
#include "weights/tensor_file.h"

namespace nmrf::train {

// A network of the options `to` with the weights of `file`, a complete network of the options
// `from`. New channels start as `seed` initialises them, and nothing reads them yet; new layers of
// propagation, inference and refinement send empty messages. The channels of the backbone, the
// hidden channels of projections, cost MLP and message passing, and the numbers of layers may
// grow. Throws Error(kUsage) naming any other option that differs, or one that shrinks, and
// Error(kModel) for a file that is not complete.
Network grow(const TensorFile& file, const std::string& path, const ModelOptions& from,
             const ModelOptions& to, std::uint64_t seed);

}  // namespace nmrf::train
