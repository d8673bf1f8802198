#include "network/flops.h"

#include "network/network.h"

namespace nmrf {

std::vector<StageCost> count_flops(const ModelOptions& options, int width, int height) {
  ParameterList names;
  const Network network(names, options);
  MemoryBlock none;
  Arena arena(none);
  arena.begin_planning();
  Context context(arena, /*threads=*/1);
  const std::int64_t w = options.aligned(width), h = options.aligned(height);
  FeatureMap left = context.map(h, w, 3), right = context.map(h, w, 3);
  network.forward(context, std::move(left), std::move(right));
  return context.costs();
}

double total_flops(const std::vector<StageCost>& stages) {
  double sum = 0;
  for (const auto& stage : stages) sum += stage.total();
  return sum;
}

}  // namespace nmrf
