// Seed completion: hole-aware and guided seeds. Not in the paper.
//
// Where the best seed of a cell is no match, surfaces seen beside it are likelier than its weaker
// seeds. The starts of the nearest matched cells of the row, the farther and the nearer surface,
// take the place of the cell's last seeds, or of the one it already has within 0.4 of a plane. A
// match is likelier than not (else the cell is unsure), and no better one of the same right cell
// contradicts it. Details: docs/model.md.
#pragma once

#include "network/label_seeds.h"

namespace nmrf {

// A cell is matched, or it is not for one of three reasons; a seed is the cell's own, comes from
// the farther or the nearer surface beside it, from a guide, or is the least disparity that puts
// the cell outside the right view.
enum class CellState : std::int64_t { kMatched, kUnsure, kContradicted, kBeyond };
enum class SeedRole : std::int64_t { kOwn, kFarther, kNearer, kGuide, kOutside };
constexpr std::int64_t kSeedRoles = 5;
constexpr std::int64_t kSeedKinds = 4 * kSeedRoles;
constexpr std::int64_t seed_kind(CellState state, SeedRole role) {
  return kSeedRoles * static_cast<std::int64_t>(state) + static_cast<std::int64_t>(role);
}

// One row of `width` cells with k seeds each, in coarse pixels. The best seed of a cell is never
// replaced.
struct SeedRow {
  // Working memory of one cell.
  struct Cell {
    CellState state;
    float start, from_right;  // of its best seed, and of the nearest match to its right
    float right_probability;  // of the best match of the right cell in this column
    std::int64_t right_seed;  // and its plane
  };

  std::int64_t width = 0, k = 0, planes = 0;
  std::int64_t* seeds = nullptr;       // [width, k] planes
  float* starts = nullptr;             // [width, k]
  std::int64_t* kinds = nullptr;       // [width, k]: seed_kind of each
  const float* probability = nullptr;  // [width, planes]
  const float* nearest = nullptr;      // [width]: largest disparity of a guide in the cell, or null
  const float* farthest = nullptr;     // [width]: smallest

  void complete(Cell* cells) const;  // cells: [width]

 private:
  void classify(Cell* cells) const;
  void offer(std::int64_t cell, float value, CellState state, SeedRole role) const;
};

// The smallest and the largest disparity that a guide has in each cell of a row of cells, in coarse
// pixels. guide: [8, 8 width] px.
void guide_extremes(const float* guide, std::int64_t width, float* farthest, float* nearest);

// Changes seeds and starts, and sets kinds. guide: [8 h, 8 w] px, unused unless `guided`.
void complete_seeds(Context& context, LabelSeeds& seeds, const float* guide, bool guided);

// A learned vector for each kind of seed (parameter `name`.weight), added to the embedding.
class SeedKindEmbedding {
 public:
  SeedKindEmbedding(Parameters& parameters, const std::string& name, std::int64_t channels);
  // x: [count, channels] += weight[kinds], on the calling thread.
  void add(const std::int64_t* kinds, std::int64_t count, float* x) const;

 private:
  std::int64_t channels_;
  std::vector<float> weight_;
};

}  // namespace nmrf
