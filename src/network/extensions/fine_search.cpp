#include "network/extensions/fine_search.h"

#include "kernels/fine_search.h"
#include "kernels/label_feature.h"

namespace nmrf {

Candidates take_candidates(Context& context, std::int64_t height, std::int64_t width,
                           std::int64_t count) {
  Candidates result;
  result.height = height;
  result.width = width;
  result.count = count;
  result.labels = context.take(height * width * count);
  result.log_prior = context.take(height * width * count);
  return result;
}

FineSearch::FineSearch(Parameters& parameters, const std::string& name, const ModelOptions& o)
    : groups_(o.gamma2_groups),
      radius_(o.refinement_search),
      score_(parameters, (2 * radius_ + 1) * groups_,
             {{name + ".score.fc1", (o.refinement_channels + 1) / 2},
              {name + ".score.fc2", 2 * radius_ + 1}},
             {.exact = true}),
      trust_(parameters.take(name + ".trust", {1})) {}

void FineSearch::forward(Context& context, const FeatureMap& left, const FeatureMap& right,
                         const Candidates& candidates, float* start) const {
  const std::int64_t height = left.height, width = left.width, count = candidates.count,
                     places = 2 * radius_ + 1, tokens = width * count, wide = places * groups_;
  const double searched = static_cast<double>(height * tokens);
  context.count(&StageCost::linear, searched * score_.operations());
  context.count(&StageCost::other, searched * static_cast<double>(places * 4 * left.channels));
  kernels::FeatureShape shape;
  shape.batch = 1, shape.height = height, shape.width = width, shape.labels = count;
  shape.channels1 = 0, shape.channels2 = left.channels;
  shape.groups = groups_, shape.radius = radius_;
  const kernels::FeatureMapsIn in{left.view(), right.view(), left.view(), right.view(),
                                  candidates.labels.data()};
  const std::int64_t room = tokens * (wide + places);
  Buffer<float> scratch = context.take(context.threads() * room);
  context.share(height, 1, [&](std::int64_t begin, std::int64_t end, int slot) {
    float *matches = scratch.data() + slot * room, *logits = matches + tokens * wide;
    for (std::int64_t y = begin; y < end; ++y) {
      kernels::label_feature_forward(shape, in, matches - y * tokens * wide, y, y + 1);
      score_.run({matches, static_cast<std::size_t>(wide)}, {},
                 {logits, static_cast<std::size_t>(places)}, 0, tokens);
      const std::int64_t at = y * tokens;
      kernels::best_places(logits, candidates.labels.data() + at, candidates.log_prior.data() + at,
                           trust_[0], width, count, places, start + y * width);
    }
  });
}

}  // namespace nmrf
