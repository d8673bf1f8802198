#include "network/inference.h"

#include <algorithm>
#include <vector>

#include "kernels/fine_search.h"
#include "kernels/patches.h"

namespace nmrf {
namespace {

constexpr float kScoreScale = 0.25f;  // of the posterior's logits
constexpr std::int64_t kPatch = 64;   // pixels of a patch

NeighbourOptions neighbour_options(const ModelOptions& o) {
  NeighbourOptions n;
  n.channels = o.inference_channels;
  n.encoding = o.encoding_channels();
  n.heads = o.inference_heads;
  n.window = o.inference_window;
  n.mlp_ratio = o.mlp_ratio;
  n.adaptive_bias = o.adaptive_bias;
  n.position_aggregation = o.position_aggregation;
  n.own_only = o.self_edges != SelfEdges::kShared;
  return n;
}

}  // namespace

Inference::Inference(Parameters& parameters, const ModelOptions& o)
    : options_(o),
      stack_(parameters, "inference", o, neighbour_options(o), o.inference_layers,
             o.self_edges == SelfEdges::kOwn, /*encoding_range=*/64),
      kinds_([&] {
        std::optional<SeedKindEmbedding> kinds;
        if (o.fill_seeds) kinds.emplace(parameters, "infer_kinds", o.inference_channels);
        return kinds;
      }()),
      offsets_(make_head(parameters, "infer_head", o.inference_channels, kPatch, stack_.norm())),
      scores_(parameters, o.inference_channels, {{"infer_score_head", kPatch}},
              {.norm = stack_.norm()}) {}

Winners Inference::forward(Context& context, MatchingMaps maps, const float* labels,
                           std::int64_t count, const std::int64_t* kinds) const {
  TokenGrid x;
  {
    Stage stage(context, "inference");
    x = stack_.embed(context, maps, labels, count);
    maps = {};
    if (kinds_) {
      const std::int64_t tokens = x.padding.width * x.labels;
      context.share(x.padding.height, 1, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t y = begin; y < end; ++y)
          kinds_->add(kinds + y * tokens, tokens,
                      x.values.data() + x.padding.row_offset(y, x.labels * x.channels));
      });
    }
    stack_.forward(context, x, labels, "infer");
    stack_.trace_output(context, x, "infer_tgt");
  }
  return decode(context, x, labels);
}

Winners Inference::decode(Context& context, const TokenGrid& x, const float* labels) const {
  Stage stage(context, "heads");
  const std::int64_t height = x.padding.height, width = x.padding.width, k = x.labels,
                     tokens = width * k;
  context.count(&StageCost::linear, static_cast<double>(height * tokens) *
                                        (offsets_.operations() + scores_.operations()));
  Winners result;
  result.disparity = context.take(height * width * kPatch);
  result.confidence = context.take(height * width * kPatch);
  result.spread = context.take(height * width * kPatch);
  const bool searched = options_.refinements > 0 && options_.refinement_search > 0;
  if (searched) result.candidates = take_candidates(context, 2 * height, 2 * width, k);
  std::vector<float> traced[2];
  if (context.tracing())
    for (auto& values : traced) values.resize(static_cast<std::size_t>(height * tokens * kPatch));
  // A row of cells at a time: its hypotheses never leave the caches.
  const std::int64_t room = tokens * kPatch;
  Buffer<float> scratch = context.take(context.threads() * 2 * room);
  context.share(height, 1, [&](std::int64_t begin, std::int64_t end, int slot) {
    float *disparity = scratch.data() + slot * 2 * room, *score = disparity + room;
    for (std::int64_t y = begin; y < end; ++y) {
      offsets_.run(x.inner_row(y), {}, {disparity, kPatch}, 0, tokens);
      scores_.run(x.inner_row(y), {}, {score, kPatch}, 0, tokens);
      if (!traced[0].empty()) {
        std::copy_n(disparity, room, traced[0].data() + y * room);
        std::copy_n(score, room, traced[1].data() + y * room);
      }
      for (std::int64_t i = 0; i < tokens; ++i) {
        const float label = labels[y * tokens + i];
        float *d = disparity + i * kPatch, *s = score + i * kPatch;
        for (std::int64_t j = 0; j < kPatch; ++j) {
          d[j] = std::max(0.0f, d[j] + label);
          s[j] *= kScoreScale;
        }
      }
      const kernels::WinnersIn in{1, width, k, score, disparity};
      kernels::pick_winners(in,
                            {result.disparity.data() + y * width * kPatch,
                             result.confidence.data() + y * width * kPatch, nullptr,
                             result.spread.data() + y * width * kPatch},
                            0, 1);
      if (searched)
        kernels::block_candidates(disparity, score, width, k,
                                  result.candidates.labels.data() + 4 * y * tokens,
                                  result.candidates.log_prior.data() + 4 * y * tokens);
    }
  });
  if (context.tracing()) {
    context.record("infer_delta", {height, width, k, kPatch}, traced[0].data());
    context.record("infer_score_logits", {height, width, k, kPatch}, traced[1].data());
    context.record("coarse_disp8", {8 * height, 8 * width, 0, 1}, result.disparity.data());
  }
  return result;
}

}  // namespace nmrf
