#include "network/refinement.h"

#include "kernels/patches.h"

namespace nmrf {
namespace {

constexpr std::int64_t kPatch = 16;  // pixels of a fine cell

NeighbourOptions neighbour_options(const ModelOptions& o) {
  NeighbourOptions n;
  n.channels = o.refinement_channels;
  n.encoding = o.encoding_channels();
  n.heads = o.refinement_heads;
  n.window = o.refinement_window;
  n.mlp_ratio = o.mlp_ratio;
  n.adaptive_bias = o.adaptive_bias;
  n.position_aggregation = o.position_aggregation;
  n.own_only = false;  // there is one label per pixel
  return n;
}

}  // namespace

std::string numbered(const char* name, int index) {
  return index == 0 ? name : name + std::to_string(index + 1);
}

Refinement::Refinement(Parameters& parameters, const ModelOptions& o, int index)
    : stack_(parameters, numbered("refinement", index), o, neighbour_options(o),
             o.refinement_layers, /*own_self_edges=*/false, /*encoding_range=*/128),
      blend_([&] {
        std::optional<EdgeAwareBlend> blend;
        if (o.refinement_blend)
          blend.emplace(parameters, numbered("refine_blend", index), o, stack_.norm());
        return blend;
      }()),
      head_(make_head(parameters, numbered("refine_head", index), o.refinement_channels, kPatch,
                      stack_.norm())) {}

TokenGrid Refinement::embed(Context& context, const MatchingMaps& maps, const float* start) const {
  return stack_.embed(context, maps, start, 1);
}

void Refinement::forward(Context& context, TokenGrid x, const float* start, const BlendImage& image,
                         float* disparity) const {
  {
    Stage stage(context, "refinement");
    stack_.forward(context, x, start, "refine");
    stack_.trace_output(context, x, "refine_tgt");
  }
  Stage stage(context, "heads");
  const std::int64_t height = x.padding.height, width = x.padding.width;
  context.count(&StageCost::linear, static_cast<double>(height * width) * head_.operations());
  Buffer<float> offsets = context.take(height * width * kPatch);
  context.share(height, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t y = begin; y < end; ++y)
      head_.run(x.inner_row(y), {}, {offsets.data() + y * width * kPatch, kPatch}, 0, width);
  });
  context.record("refine_delta", {height, width, 0, kPatch}, offsets.data());
  if (blend_) blend_->add(context, x, start, image, offsets.data());
  context.share(height, 2, [&](std::int64_t begin, std::int64_t end, int) {
    kernels::unfold_offsets(start, offsets.data(), width, disparity, begin, end);
  });
}

}  // namespace nmrf
