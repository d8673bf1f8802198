#include "network/extensions/fine_search.h"

#include <algorithm>
#include <cmath>

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

void Candidates::take_row(std::int64_t y, const float* disparity, const float* score) const {
  constexpr std::int64_t kPatch = 64;
  const std::int64_t cells = width / 2;
  for (std::int64_t cell = 0; cell < cells; ++cell) {
    const float *d = disparity + cell * count * kPatch, *s = score + cell * count * kPatch;
    float disparities[4][16] = {}, posteriors[4][16] = {};
    for (std::int64_t pixel = 0; pixel < kPatch; ++pixel) {
      const std::int64_t block = pixel / 32 * 2 + pixel % 8 / 4;
      float most = s[pixel], sum = 0;
      for (std::int64_t l = 1; l < count; ++l) most = std::max(most, s[l * kPatch + pixel]);
      float weights[16];
      for (std::int64_t l = 0; l < count; ++l)
        sum += weights[l] = std::exp(s[l * kPatch + pixel] - most);
      for (std::int64_t l = 0; l < count; ++l) {
        disparities[block][l] += d[l * kPatch + pixel];
        posteriors[block][l] += weights[l] / sum;
      }
    }
    for (std::int64_t block = 0; block < 4; ++block) {
      const std::int64_t at = ((2 * y + block / 2) * width + 2 * cell + block % 2) * count;
      for (std::int64_t l = 0; l < count; ++l) {
        labels.data()[at + l] = 2 * (disparities[block][l] / 16);
        log_prior.data()[at + l] = std::log(std::max(posteriors[block][l] / 16, 1e-6f));
      }
    }
  }
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
      for (std::int64_t x = 0; x < width; ++x) {
        const std::int64_t cell = (y * width + x) * count;
        float best = 0, best_mass = 0;
        for (std::int64_t l = 0; l < count; ++l) {
          // Of disparity label + r first, label - r last.
          const float* line = logits + (x * count + l) * places;
          const float most = *std::max_element(line, line + places);
          float sum = 0, mean = 0;
          for (std::int64_t i = 0; i < places; ++i) {
            const float weight = std::exp(line[i] - most);
            sum += weight;
            mean += weight * static_cast<float>(radius_ - i);
          }
          const float mass =
              most + std::log(sum) + trust_[0] * candidates.log_prior.data()[cell + l];
          if (l > 0 && !(mass > best_mass)) continue;
          best_mass = mass;
          best = candidates.labels.data()[cell + l] + mean / sum;
        }
        start[y * width + x] = std::max(0.0f, best);
      }
    }
  });
}

}  // namespace nmrf
