// Top k label seeds (paper section 3.3): the best modals of the cost volume, where labels start.
#pragma once

#include "network/cost_volume.h"
#include "network/options.h"

namespace nmrf {

// Of a coarse grid [h, w] with k labels per cell.
struct LabelSeeds {
  CostVolume volume;
  Buffer<float> starts;  // [h, w, k] coarse pixels: the seeds, or where an extension moves them
  // [h, w, k]: SeedKind of each seed; only with the extension seed completion.
  Buffer<std::int64_t> kinds;

  std::int64_t* planes() const { return volume.modals.data(); }  // [h, w, k]
};

// guide: a map [8 h, 8 w] in pixels of the same pair, found before at another size, or null; only
// with the extension seed completion.
LabelSeeds find_label_seeds(Context& context, const CostScore& score, const FeatureMap& left,
                            const FeatureMap& right, const ModelOptions& options,
                            const float* guide, bool guided);

}  // namespace nmrf
