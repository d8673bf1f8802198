// What a training step minimises: the weighted sum of the losses that the scope calls for.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "train/losses.h"

namespace nmrf {

struct Objective {
  torch::Tensor total;                                // scalar with gradient
  std::vector<std::pair<std::string, double>> terms;  // unweighted: init, proposal, coarse_0, fine_0 ...
  double epe = 0;  // of the final map over the counted pixels; only with Scope::kAll
};

// Averages the numbers of counted pixels over the processes of a run, in place: [terms].
using CountAverager = std::function<void(torch::Tensor&)>;

// The losses of everything that `out` holds. `max_disp` is the network's: pixels beyond it supervise
// neither seeds nor proposals. With `average_counts`, the mean of the totals of all processes is that of
// the whole batch, however unevenly the counted pixels are spread over them.
Objective make_objective(const NetworkOutput& out, const Truth& truth, const LossOptions& options,
                         double max_disp, const CountAverager& average_counts = {});

}  // namespace nmrf
