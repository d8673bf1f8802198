// Fine search: before refinement, the views of each fine cell are matched around every candidate
// label. Not in the paper.
#pragma once

#include "network/layers.h"
#include "network/options.h"

namespace nmrf {

// The labels that the search chooses from, and how far inference believes in each. Of each 4 x 4
// block: the mean of every label's hypotheses and of its posterior.
struct Candidates {
  std::int64_t height = 0, width = 0, count = 0;  // of the fine grid
  Buffer<float> labels;                           // [h, w, count] fine pixels
  Buffer<float> log_prior;                        // [h, w, count]
};
Candidates take_candidates(Context& context, std::int64_t height, std::int64_t width,
                           std::int64_t count);

class FineSearch {
 public:
  // `name`: refine_search, refine_search2.
  FineSearch(Parameters& parameters, const std::string& name, const ModelOptions& options);
  // start: [h, w] fine pixels: of the label with the most mass under one softmax over all places of
  // all labels, the mean place. left, right: fine features.
  void forward(Context& context, const FeatureMap& left, const FeatureMap& right,
               const Candidates& candidates, float* start) const;

 private:
  std::int64_t groups_, radius_;
  TokenMlp score_;
  std::vector<float> trust_;  // in the prior
};

}  // namespace nmrf
