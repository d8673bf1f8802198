#include "data/sample_source.h"

namespace nmrf {

DatasetSource::DatasetSource(std::shared_ptr<const Dataset> dataset, AugmentOptions options,
                             Segmenter segmenter, bool use_objects)
    : dataset_(std::move(dataset)), options_(std::move(options)), segmenter_(std::move(segmenter)) {
  options_.validate();
  segments_.use_objects = use_objects;
  segments_.both_views = options_.enabled && options_.mirror > 0;
}

std::optional<std::int64_t> DatasetSource::size() const {
  return static_cast<std::int64_t>(dataset_->size());
}

Sample DatasetSource::get(std::int64_t index, std::uint64_t draw_seed) const {
  Rng rng(draw_seed);
  Sample sample = dataset_->load(static_cast<std::size_t>(index));
  if (segmenter_) add_segments(sample, segmenter_, segments_);
  sample = augment(std::move(sample), options_, rng);
  if (segmenter_) add_modals(sample);
  return sample;
}

std::string DatasetSource::describe(std::int64_t index) const {
  const SampleRef& ref = dataset_->ref(static_cast<std::size_t>(index));
  return dataset_->name() + ": " + ref.name + " (" + ref.left.string() + ")";
}

}  // namespace nmrf
