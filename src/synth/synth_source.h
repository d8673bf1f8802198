// Scenes rendered on the fly, so that training never sees one twice.
#pragma once

#include "data/sample_source.h"
#include "synth/options.h"

namespace nmrf {

class SynthSource : public SampleSource {
 public:
  // Pairs of the crop's size; the augmentation is applied on top of the renderer's own camera.
  // With `modals` the samples bring them along, split by the ids of the objects. Throws
  // Error(kUsage).
  SynthSource(SynthOptions options, AugmentOptions augment, bool modals);
  std::optional<std::int64_t> size() const override { return std::nullopt; }
  Sample get(std::int64_t index, std::uint64_t draw_seed) const override;
  std::string describe(std::int64_t index) const override;

 private:
  SynthOptions options_;
  AugmentOptions augment_;
  bool modals_;
};

}  // namespace nmrf
