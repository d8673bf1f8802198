// How much arithmetic each stage costs.
#pragma once

#include <vector>

#include "network/context.h"
#include "network/options.h"

namespace nmrf {

// Of one pass over one pair, counted by planning it; stages in order of their first use. The
// kernels need a little less than the published operators counted here: they share what the labels
// of a pixel share. width, height: of the images before padding.
std::vector<StageCost> count_flops(const ModelOptions& options, int width, int height);
double total_flops(const std::vector<StageCost>& stages);

}  // namespace nmrf
