#include "train/sources.h"

#include "core/check.h"
#include "data/mixed_source.h"
#include "synth/synth_source.h"
#include "train/superpixels.h"

namespace nmrf::train {

std::shared_ptr<const SampleSource> make_source(const TrainConfig& config,
                                                const StageOptions& stage,
                                                const std::filesystem::path& run_folder) {
  AugmentOptions augment = config.augment;
  augment.crop_height = stage.crop_height;
  augment.crop_width = stage.crop_width;
  augment.keep_clean = !config.teacher.model.empty();
  const bool modals = config.loss.modals == ModalKind::kSuperpixel;
  Segmenter superpixels;
  if (modals)
    superpixels = cached_superpixels(config.cache.empty() ? run_folder / "superpixels"
                                                          : std::filesystem::path(config.cache));
  std::vector<MixedSource::Part> parts;
  for (int i = 0; i < TrainConfig::kSources; ++i) {
    const DatasetOptions& options = config.sources[i];
    if (options.name.empty()) continue;
    if (options.name == "synth") {
      parts.push_back({std::make_shared<SynthSource>(config.synth, augment, modals), 1});
      continue;
    }
    std::shared_ptr<const Dataset> dataset = open_dataset(options);
    parts.push_back(
        {std::make_shared<DatasetSource>(dataset, augment, superpixels), config.repeat[i]});
  }
  return std::make_shared<MixedSource>(std::move(parts));
}

}  // namespace nmrf::train
