#include "synth/synth_source.h"

#include "core/rng.h"
#include "data/augment.h"
#include "data/modals.h"
#include "synth/synth.h"

namespace nmrf {

SynthSource::SynthSource(SynthOptions options, AugmentOptions augment, bool modals)
    : options_(std::move(options)), augment_(augment), modals_(modals) {
  options_.width = augment_.crop_width;
  options_.height = augment_.crop_height;
  options_.validate();
  augment_.validate();
}

Sample SynthSource::get(std::int64_t index, std::uint64_t draw_seed) const {
  SynthPair pair =
      render_pair(options_, static_cast<std::uint64_t>(options_.seed), static_cast<int>(index));
  Sample sample;
  sample.left = pair.left;
  sample.right = pair.right;
  sample.disparity = pair.left_disparity;
  sample.right_disparity = pair.right_disparity;
  sample.noc_mask = 255 - pair.left_occluded;
  sample.objects = pair.left_objects;
  sample.right_objects = pair.right_objects;
  sample.objects_everywhere = true;
  sample.name = describe(index);
  Rng rng(draw_seed);
  sample = augment(std::move(sample), augment_, rng);
  if (modals_) add_modals(sample);
  return sample;
}

std::string SynthSource::describe(std::int64_t index) const {
  return "synthetic scene " + std::to_string(index);
}

}  // namespace nmrf
