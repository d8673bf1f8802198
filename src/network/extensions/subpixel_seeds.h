// Sub-pixel seeds: labels start between the planes of the cost volume. Not in the paper.
#pragma once

#include "network/label_seeds.h"

namespace nmrf {

// The mean of the planes z - 1, z, z + 1 of each seed z under the softmax of their costs: where the
// initialisation loss has taught the cost, a disparity between two planes. Sets seeds.starts.
void subpixel_starts(Context& context, LabelSeeds& seeds);

// The same on raw values: cost [cells, planes], seeds and starts [cells, labels].
void subpixel_starts(const float* cost, std::int64_t planes, const std::int64_t* seeds,
                     std::int64_t labels, float* starts, std::int64_t begin, std::int64_t end);

}  // namespace nmrf
