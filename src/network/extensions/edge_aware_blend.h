// Edge-aware blending: a pixel near an edge takes the start of the cell that its colour belongs to.
// Not in the paper.
#pragma once

#include "network/layers.h"
#include "network/message_passing.h"
#include "network/options.h"

namespace nmrf {

// The colours that blending compares.
struct BlendImage {
  Buffer<float> pixels;  // [3, 4 h, 4 w], 0 to 255
  Buffer<float> cells;   // [3, h, w], means of 4 x 4 pixels
};

class EdgeAwareBlend {
 public:
  // `name`: refine_blend, refine_blend2; norm: the final LayerNorm of the refinement's embedding.
  EdgeAwareBlend(Parameters& parameters, const std::string& name, const ModelOptions& options,
                 const std::string& norm);
  // Adds to offsets [h, w, 16] of the pixels of each cell: a mean of the starts [h, w] of the 3 x 3
  // cells around it, weighted by the embedding and by the distance of colours, less its own start.
  void add(Context& context, const TokenGrid& x, const float* start, const BlendImage& image,
           float* offsets) const;

 private:
  TokenMlp weigh_;
};

}  // namespace nmrf
