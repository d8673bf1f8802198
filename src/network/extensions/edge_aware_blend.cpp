#include "network/extensions/edge_aware_blend.h"

#include "kernels/patches.h"

namespace nmrf {

EdgeAwareBlend::EdgeAwareBlend(Parameters& parameters, const std::string& name,
                               const ModelOptions& o, const std::string& norm)
    : weigh_(parameters, o.refinement_channels,
             {{name + ".weigh.fc1", ModelOptions::blend_hidden},
              {name + ".weigh.fc2", kernels::kHead}},
             {.norm = norm, .exact = true}) {}

void EdgeAwareBlend::add(Context& context, const TokenGrid& x, const float* start,
                         const BlendImage& image, float* offsets) const {
  const std::int64_t height = x.padding.height, width = x.padding.width,
                     room = width * (kernels::kHead + kernels::kPixels);
  context.count(&StageCost::linear, static_cast<double>(height * width) * weigh_.operations());
  // Colours, weights and the mean.
  context.count(&StageCost::other, static_cast<double>(height * width * 16 * 9 * 10));
  Buffer<float> scratch = context.take(context.threads() * room);
  context.share(height, 1, [&](std::int64_t begin, std::int64_t end, int slot) {
    float *weights = scratch.data() + slot * room, *blended = weights + width * kernels::kHead;
    for (std::int64_t y = begin; y < end; ++y) {
      weigh_.run(x.inner_row(y), {}, {weights, kernels::kHead}, 0, width);
      const kernels::BlendIn in{
          height, width, y, 1, weights, start, image.pixels.data(), image.cells.data()};
      kernels::blend_cells(in, blended, 0, 1);
      float* to = offsets + y * width * kernels::kPixels;
      for (std::int64_t i = 0; i < width * kernels::kPixels; ++i) to[i] += blended[i];
    }
  });
}

}  // namespace nmrf
