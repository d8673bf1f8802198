#include "network/extensions/subpixel_seeds.h"

#include <algorithm>
#include <cmath>

namespace nmrf {

void subpixel_starts(const float* cost, std::int64_t planes, const std::int64_t* seeds,
                     std::int64_t labels, float* starts, std::int64_t begin, std::int64_t end) {
  for (std::int64_t cell = begin; cell < end; ++cell) {
    const float* line = cost + cell * planes;
    for (std::int64_t i = cell * labels; i < (cell + 1) * labels; ++i) {
      const std::int64_t first = std::max<std::int64_t>(seeds[i] - 1, 0),
                         last = std::min(seeds[i] + 1, planes - 1);
      const float most = *std::max_element(line + first, line + last + 1);
      float weights = 0, mean = 0;
      for (std::int64_t z = first; z <= last; ++z) {
        const float weight = std::exp(line[z] - most);
        weights += weight;
        mean += weight * static_cast<float>(z);
      }
      starts[i] = mean / weights;
    }
  }
}

void subpixel_starts(Context& context, LabelSeeds& seeds) {
  const CostVolume& volume = seeds.volume;
  context.share(volume.cells(), 256, [&](std::int64_t begin, std::int64_t end, int) {
    subpixel_starts(volume.cost.data(), volume.planes, seeds.planes(), volume.labels,
                    seeds.starts.data(), begin, end);
  });
}

}  // namespace nmrf
