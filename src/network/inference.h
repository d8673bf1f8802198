// Neural MRF inference on the coarse grid (paper section 3.2): message passing among candidate
// labels, and the disparity hypotheses decoded from their embeddings.
#pragma once

#include <optional>

#include "network/extensions/fine_search.h"
#include "network/extensions/seed_completion.h"
#include "network/message_passing.h"
#include "network/options.h"

namespace nmrf {

// Winner takes all: the hypothesis of the likeliest label, the lower label index on an exact tie.
struct Winners {
  Buffer<float> disparity;   // [H, W] coarse pixels
  Buffer<float> confidence;  // [H, W] posterior probability of the winner
  Buffer<float> spread;      // [H, W] mean distance of the hypotheses from it, coarse pixels
  Candidates candidates;     // of the extension fine search; else empty
};

class Inference {
 public:
  Inference(Parameters& parameters, const ModelOptions& options);
  // labels: [h, w, count] coarse pixels; kinds: of the seeds, with seed completion.
  Winners forward(Context& context, MatchingMaps maps, const float* labels, std::int64_t count,
                  const std::int64_t* kinds) const;

 private:
  // Each label gives an 8 x 8 patch of disparities and of scores.
  Winners decode(Context& context, const TokenGrid& x, const float* labels) const;

  ModelOptions options_;
  MessagePassing stack_;
  std::optional<SeedKindEmbedding> kinds_;
  TokenMlp offsets_;
  TokenMlp scores_;
};

}  // namespace nmrf
