// Where a training run takes its samples from.
#pragma once

#include <filesystem>
#include <memory>

#include "data/sample_source.h"
#include "train/config.h"

namespace nmrf::train {

// The configured data sets as one source with the stage's crop. A data set called "synth" renders
// new scenes on the fly, so that none is seen twice. `run_folder` holds the cache of superpixels
// unless the config names another.
std::shared_ptr<const SampleSource> make_source(const TrainConfig& config,
                                                const StageOptions& stage,
                                                const std::filesystem::path& run_folder);

}  // namespace nmrf::train
