#include "network/label_seeds.h"

#include "network/extensions/seed_completion.h"
#include "network/extensions/subpixel_seeds.h"

namespace nmrf {

LabelSeeds find_label_seeds(Context& context, const CostScore& score, const FeatureMap& left,
                            const FeatureMap& right, const ModelOptions& options,
                            const float* guide, bool guided) {
  LabelSeeds seeds;
  seeds.volume = score.forward(context, left, right, options.planes(), options.labels);
  const std::int64_t count = seeds.volume.cells() * options.labels;
  seeds.starts = context.take(count);
  if (options.subpixel_seeds) {
    subpixel_starts(context, seeds);
  } else {
    context.share(count, 4096, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end; ++i)
        seeds.starts.data()[i] = static_cast<float>(seeds.planes()[i]);
    });
  }
  if (options.fill_seeds) complete_seeds(context, seeds, guide, guided);
  return seeds;
}

}  // namespace nmrf
