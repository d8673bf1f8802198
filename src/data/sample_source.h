// Where the loader takes samples from: a data set, or scenes made on the fly.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "data/augment.h"
#include "data/dataset.h"
#include "data/modals.h"

namespace nmrf {

class SampleSource {
 public:
  virtual ~SampleSource() = default;
  // The number of samples of one epoch; nothing when the source never ends.
  virtual std::optional<std::int64_t> size() const = 0;
  // The sample of that index, with all randomness drawn from `draw_seed`: the same two numbers give
  // the same sample. Called from several threads at once. Throws when the sample is broken.
  virtual Sample get(std::int64_t index, std::uint64_t draw_seed) const = 0;
  // A name of the sample for messages.
  virtual std::string describe(std::int64_t index) const = 0;
};

// The samples of a data set, augmented.
class DatasetSource : public SampleSource {
 public:
  // Throws Error(kUsage) when the options are not valid. With a `segmenter` the samples come with
  // their modals, split by the segments of the image before augmentation; `use_objects` lets object
  // ids stand in for it where a data set has them for every surface. When samples may be
  // mirrored, both views are split.
  DatasetSource(std::shared_ptr<const Dataset> dataset, AugmentOptions options,
                Segmenter segmenter = {}, bool use_objects = true);
  std::optional<std::int64_t> size() const override;
  Sample get(std::int64_t index, std::uint64_t draw_seed) const override;
  std::string describe(std::int64_t index) const override;

 private:
  std::shared_ptr<const Dataset> dataset_;
  AugmentOptions options_;
  Segmenter segmenter_;
  SegmentOptions segments_;
};

}  // namespace nmrf
