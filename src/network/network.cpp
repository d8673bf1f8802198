#include "network/network.h"

#include "kernels/patches.h"

namespace nmrf {
namespace {

BlendImage blend_image(Context& context, const FeatureMap& image) {
  const std::int64_t height = image.height, width = image.width, h = height / 4, w = width / 4;
  BlendImage result{context.take(3 * height * width), context.take(3 * h * w)};
  context.share(h, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t channel = 0; channel < 3; ++channel) {
      float* plane = result.pixels.data() + channel * height * width;
      for (std::int64_t y = 4 * begin; y < 4 * end; ++y)
        for (std::int64_t x = 0; x < width; ++x)
          plane[y * width + x] = image.values.data()[(y * width + x) * 3 + channel];
      float* means = result.cells.data() + channel * h * w;
      for (std::int64_t y = begin; y < end; ++y)
        for (std::int64_t x = 0; x < w; ++x) {
          float sum = 0;
          for (std::int64_t i = 0; i < 16; ++i)
            sum += plane[(4 * y + i / 4) * width + 4 * x + i % 4];
          means[y * w + x] = sum / 16;
        }
    }
  });
  return result;
}

// Stride-4 median pooling of a map [4 h, 4 w] times `factor`: where refinement starts.
void median_start(Context& context, const float* map, std::int64_t h, std::int64_t w, float factor,
                  float* start) {
  context.share(h, 2, [&](std::int64_t begin, std::int64_t end, int) {
    kernels::median_of_blocks(map, w, start, begin, end);
    for (std::int64_t i = begin * w; i < end * w; ++i) start[i] *= factor;
  });
}

std::variant<Backbone, SwinEncoder> make_backbone(Parameters& parameters, const ModelOptions& o) {
  if (o.backbone != BackboneKind::kSwinT) return Backbone(parameters, o);
  // Its offsets of samples carry positions: the whole encoder stays in float.
  const bool bytes = parameters.bytes();
  parameters.use_bytes(false);
  SwinEncoder encoder(parameters, o.feature_channels);
  parameters.use_bytes(bytes);
  return encoder;
}

}  // namespace

Network::Network(Parameters& parameters, const ModelOptions& o)
    : options_((o.validate(), o)),
      backbone_(make_backbone(parameters, o)),
      cost_score_(parameters, o),
      propagation_(parameters, o),
      projections_(parameters, o),
      inference_(parameters, o) {
  for (int i = 0; i < o.refinements; ++i) {
    if (o.refinement_search > 0)
      searches_.emplace_back(parameters, numbered("refine_search", i), o);
    refinements_.emplace_back(parameters, o, i);
  }
}

void Network::set_max_disp(int max_disp) {
  ModelOptions changed = options_;
  changed.max_disp = max_disp;
  changed.validate();
  options_ = changed;
}

FeatureMaps Network::features(Context& context, const FeatureMap& image, const char* view) const {
  if (const auto* swin = std::get_if<SwinEncoder>(&backbone_))
    return swin->forward(context, image, view);
  return std::get<Backbone>(backbone_).forward(context, image);
}

// Whatever is not needed any longer is given back at once: the peak is what a match costs.
NetworkOutput Network::forward(Context& context, FeatureMap left, FeatureMap right,
                               const float* guide, bool guided, int labels) const {
  NetworkOutput out;
  ModelOptions options = options_;
  if (labels > 0) options.labels = labels;
  const std::int64_t height = left.height, width = left.width;

  FeatureMaps left_maps, right_maps;
  {
    Stage stage(context, "backbone");
    left_maps = features(context, left, "");
    right_maps = features(context, right, "_right");
  }
  right = {};
  context.record("fmap4", left_maps.fine);
  context.record("fmap8", left_maps.coarse);
  context.record("fmap4_right", right_maps.fine);
  context.record("fmap8_right", right_maps.coarse);

  LabelSeeds seeds;
  {
    Stage stage(context, "cost volume");
    seeds = find_label_seeds(context, cost_score_, left_maps.coarse, right_maps.coarse, options,
                             guide, guided);
  }
  if (context.tracing()) {
    const CostVolume& volume = seeds.volume;
    context.record("cost_volume", {volume.height, volume.width, volume.planes, volume.groups},
                   volume.correlation.data());
    context.record("cost", {volume.height, volume.width, 0, volume.planes}, volume.cost.data());
    context.record("prob", {volume.height, volume.width, 0, volume.planes},
                   volume.probability.data());
  }
  out.labels = propagation_.forward(context, seeds, left_maps.coarse);
  out.seeds = std::move(seeds.volume.modals);

  Winners winners;
  {
    MatchingMaps maps;
    {
      Stage stage(context, "gamma");
      maps = projections_.forward(context, left_maps.coarse, right_maps.coarse, /*last=*/true);
    }
    context.record("infer_fmap1", maps.left1);
    context.record("infer_fmap2", maps.right1);
    context.record("infer_gw1", maps.left2);
    context.record("infer_gw2", maps.right2);
    winners = inference_.forward(context, std::move(maps), out.labels.data(), options.labels,
                                 seeds.kinds.data());
  }
  out.confidence = std::move(winners.confidence);
  out.spread = std::move(winners.spread);
  out.winner = std::move(winners.disparity);
  out.disparity = context.take(height * width);
  if (refinements_.empty()) {
    context.share(height * width, 4096, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end; ++i) out.disparity.data()[i] = 8 * out.winner.data()[i];
    });
    return out;
  }

  const std::int64_t h = height / 4, w = width / 4;
  MatchingMaps maps;
  Buffer<float> start = context.take(h * w);
  BlendImage image = options_.refinement_blend ? blend_image(context, left) : BlendImage();
  left = {};
  for (std::size_t i = 0; i < refinements_.size(); ++i) {
    const bool last = i + 1 == refinements_.size();
    {
      Stage stage(context, "refinement");
      // Winners are in coarse pixels, refined maps in pixels; the start is in fine ones.
      if (i == 0 && searches_.empty())
        median_start(context, out.winner.data(), h, w, 2.0f, start.data());
      if (i > 0) median_start(context, out.disparity.data(), h, w, 0.25f, start.data());
      if (!searches_.empty()) {
        Candidates candidates = std::move(winners.candidates);
        if (i > 0) {
          candidates = take_candidates(context, h, w, 1);
          context.share(h * w, 4096, [&](std::int64_t begin, std::int64_t end, int) {
            for (std::int64_t j = begin; j < end; ++j) {
              candidates.labels.data()[j] = start.data()[j];
              candidates.log_prior.data()[j] = 0;
            }
          });
        }
        searches_[i].forward(context, left_maps.fine, right_maps.fine, candidates, start.data());
      }
    }
    context.record("disp_curr", {h, w, 0, 1}, start.data());
    if (i == 0) {
      Stage stage(context, "gamma");
      maps = projections_.forward(context, left_maps.fine, right_maps.fine,
                                  /*last=*/last || searches_.empty());
      context.record("refine_fmap1", maps.left1);
      context.record("refine_fmap2", maps.right1);
      context.record("refine_gw1", maps.left2);
      context.record("refine_gw2", maps.right2);
    }
    TokenGrid embedded;
    {
      Stage stage(context, "refinement");
      embedded = refinements_[i].embed(context, maps, start.data());
      if (last) maps = {};
    }
    refinements_[i].forward(context, std::move(embedded), start.data(), image,
                            out.disparity.data());
  }
  return out;
}

std::vector<ParameterSpec> parameters_of(const ModelOptions& options) {
  ParameterList list;
  Network network(list, options);
  return list.all();
}

}  // namespace nmrf
