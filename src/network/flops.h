// How much arithmetic each stage costs.
#pragma once

#include <string>
#include <vector>

#include "network/options.h"

namespace nmrf {

// Floating-point operations (a multiply-add counts two) of the network as published, for one pair.
// The fast operators need a little less: they share what the labels of a pixel share.
struct StageCost {
  std::string name;
  double convolution = 0;
  double linear = 0;
  double attention = 0;
  double other = 0;
  double total() const { return convolution + linear + attention + other; }
};

// Stages in order: backbone, gamma, cost volume, propagation, inference, refinement, heads.
// width, height: of the images before padding.
std::vector<StageCost> count_flops(const ModelOptions& options, int width, int height);
double total_flops(const std::vector<StageCost>& stages);

}  // namespace nmrf
