#include "data/sample_source.h"

namespace nmrf {

DatasetSource::DatasetSource(std::shared_ptr<const Dataset> dataset, AugmentOptions options)
    : dataset_(std::move(dataset)), options_(std::move(options)) {
  options_.validate();
}

std::optional<std::int64_t> DatasetSource::size() const {
  return static_cast<std::int64_t>(dataset_->size());
}

Sample DatasetSource::get(std::int64_t index, std::uint64_t draw_seed) const {
  Rng rng(draw_seed);
  return augment(dataset_->load(static_cast<std::size_t>(index)), options_, rng);
}

std::string DatasetSource::describe(std::int64_t index) const {
  const SampleRef& ref = dataset_->ref(static_cast<std::size_t>(index));
  return dataset_->name() + ": " + ref.name + " (" + ref.left.string() + ")";
}

}  // namespace nmrf
