// Disparity refinement on the fine grid (paper section 3.4): one label per pixel, neighbour edges
// only, and 4 x 4 offsets decoded from each embedding.
#pragma once

#include <optional>
#include <string>

#include "network/extensions/edge_aware_blend.h"
#include "network/message_passing.h"
#include "network/options.h"

namespace nmrf {

class Refinement {
 public:
  // index 0 or 1: the cascaded modules (published names refinement, refine_head; refinement2, ...).
  Refinement(Parameters& parameters, const ModelOptions& options, int index);
  // The labels that start: [h, w], fine pixels, embedded with what the maps show there.
  TokenGrid embed(Context& context, const MatchingMaps& maps, const float* start) const;
  // -> disparity [4 h, 4 w] px. image: for edge-aware blending.
  void forward(Context& context, TokenGrid x, const float* start, const BlendImage& image,
               float* disparity) const;

 private:
  MessagePassing stack_;
  std::optional<EdgeAwareBlend> blend_;
  TokenMlp head_;
};

// `name`, or with a 2 behind it for the second module.
std::string numbered(const char* name, int index);

}  // namespace nmrf
