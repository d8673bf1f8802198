// The steps of the fine search around its network: candidates from the hypotheses of inference, and
// the best place near them.
#pragma once

#include <cstdint>

namespace nmrf::kernels {

constexpr std::int64_t kMostCandidates = 16;

// A row of coarse cells. disparity, score: [cells, count, 64], patches of 8 x 8; scores are logits.
// Of every 4 x 4 block of a patch: twice the mean of each label's disparities, and the logarithm of
// the mean of its posterior (at least 1e-6). labels, log_prior: [2, 2 cells, count].
void block_candidates(const float* disparity, const float* score, std::int64_t cells,
                      std::int64_t count, float* labels, float* log_prior);

// A row of fine cells. logits: [width, count, places], of the candidate's disparity plus (places -
// 1) / 2 first. start: [width], of the candidate whose places have the most mass (log-sum of the
// logits, plus trust times its log prior) the mean place, at least 0.
void best_places(const float* logits, const float* labels, const float* log_prior, float trust,
                 std::int64_t width, std::int64_t count, std::int64_t places, float* start);

}  // namespace nmrf::kernels
