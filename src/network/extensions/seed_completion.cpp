#include "network/extensions/seed_completion.h"

#include <algorithm>
#include <cmath>

namespace nmrf {
namespace {

constexpr float kSame = 0.4f;  // planes between two seeds of one surface
constexpr float kNone = -1;

// The cell from which on the right view shows the row: two matched ones in a row begin there, as
// one may be chance. 0 where there are none.
std::int64_t first_seen(const SeedRow::Cell* cells, std::int64_t width) {
  for (std::int64_t i = 0; i + 1 < width; ++i)
    if (cells[i].state == CellState::kMatched && cells[i + 1].state == CellState::kMatched)
      return i;
  return 0;
}

}  // namespace

// As the best seeds say: kMatched, kUnsure or kContradicted.
void SeedRow::classify(Cell* cells) const {
  auto best = [&](std::int64_t i) { return probability[i * planes + seeds[i * k]]; };
  for (std::int64_t i = 0; i < width; ++i) {
    cells[i].right_probability = 0;
    cells[i].right_seed = -2;
  }
  for (std::int64_t i = 0; i < width; ++i) {
    const std::int64_t j = i - seeds[i * k];
    if (j < 0 || best(i) <= cells[j].right_probability) continue;
    cells[j].right_probability = best(i);
    cells[j].right_seed = seeds[i * k];
  }
  for (std::int64_t i = 0; i < width; ++i) {
    const std::int64_t j = i - seeds[i * k];
    cells[i].state = CellState::kMatched;
    if (best(i) < 0.5f)
      cells[i].state = CellState::kUnsure;
    else if (j < 0 || std::abs(cells[j].right_seed - seeds[i * k]) > 1)
      cells[i].state = CellState::kContradicted;
  }
}

// Gives the role to the seed that says the same, unless a guide has, or to the last of the cell's
// own but its best, instead of what is there.
void SeedRow::offer(std::int64_t cell, float value, CellState state, SeedRole role) const {
  const std::int64_t own = seed_kind(state, SeedRole::kOwn);
  float* start = starts + cell * k;
  std::int64_t* kind = kinds + cell * k;
  std::int64_t slot =
      std::find_if(start, start + k, [&](float s) { return std::abs(s - value) < kSame; }) - start;
  if (slot == k) {
    slot = k - 1;
    while (slot > 0 && kind[slot] != own) --slot;
    if (slot == 0) return;
    start[slot] = value;
    seeds[cell * k + slot] = std::clamp<std::int64_t>(std::lround(value), 0, planes - 1);
  }
  if (kind[slot] == own) kind[slot] = seed_kind(state, role);
}

void SeedRow::complete(Cell* cells) const {
  classify(cells);
  for (std::int64_t i = 0; i < width; ++i) cells[i].start = starts[i * k];
  float seen = kNone;
  std::int64_t edge = 0;  // cells before it are outside the right view
  for (std::int64_t i = width - 1; i >= 0; --i) {
    if (edge == 0 && seen > static_cast<float>(i)) edge = i + 1;
    if (edge > 0) cells[i].state = CellState::kBeyond;
    cells[i].from_right = seen;
    if (cells[i].state == CellState::kMatched) seen = cells[i].start;
  }
  const std::int64_t first = first_seen(cells, width);
  float from_left = kNone;
  for (std::int64_t i = 0; i < width; ++i) {
    const CellState state = cells[i].state;
    std::fill_n(kinds + i * k, k, seed_kind(state, SeedRole::kOwn));
    if (farthest) {
      offer(i, farthest[i], state, SeedRole::kGuide);
      offer(i, nearest[i], state, SeedRole::kGuide);
    }
    if (state == CellState::kMatched) {
      from_left = cells[i].start;
      continue;
    }
    const float from_right = cells[i].from_right, high = std::max(from_left, from_right);
    const bool both = from_left != kNone && from_right != kNone;
    const float low = both ? std::min(from_left, from_right) : high;
    if (low == kNone) continue;
    offer(i, low, state, SeedRole::kFarther);
    if (i < first && first < planes) offer(i, static_cast<float>(first), state, SeedRole::kOutside);
    if (high - low >= kSame) offer(i, high, state, SeedRole::kNearer);
  }
}

void guide_extremes(const float* guide, std::int64_t width, float* farthest, float* nearest) {
  for (std::int64_t cell = 0; cell < width; ++cell) {
    float low = guide[8 * cell], high = low;
    for (std::int64_t y = 0; y < 8; ++y)
      for (std::int64_t x = 0; x < 8; ++x) {
        const float value = guide[y * 8 * width + 8 * cell + x];
        low = std::min(low, value);
        high = std::max(high, value);
      }
    farthest[cell] = low / 8;
    nearest[cell] = high / 8;
  }
}

void complete_seeds(Context& context, LabelSeeds& seeds, const float* guide, bool guided) {
  const CostVolume& volume = seeds.volume;
  const std::int64_t width = volume.width, k = volume.labels;
  seeds.kinds = context.take<std::int64_t>(volume.cells() * k);
  auto cells = context.take<SeedRow::Cell>(context.threads() * width);
  auto extremes = guided ? context.take(context.threads() * 2 * width) : Buffer<float>();
  context.share(volume.height, 1, [&](std::int64_t begin, std::int64_t end, int slot) {
    for (std::int64_t y = begin; y < end; ++y) {
      SeedRow row;
      row.width = width, row.k = k, row.planes = volume.planes;
      row.seeds = seeds.planes() + y * width * k;
      row.starts = seeds.starts.data() + y * width * k;
      row.kinds = seeds.kinds.data() + y * width * k;
      row.probability = volume.probability.data() + y * width * volume.planes;
      if (guided) {
        float* farthest = extremes.data() + slot * 2 * width;
        guide_extremes(guide + y * 64 * width, width, farthest, farthest + width);
        row.farthest = farthest;
        row.nearest = farthest + width;
      }
      row.complete(cells.data() + slot * width);
    }
  });
}

SeedKindEmbedding::SeedKindEmbedding(Parameters& parameters, const std::string& name,
                                     std::int64_t channels)
    : channels_(channels), weight_(parameters.take(name + ".weight", {kSeedKinds, channels})) {}

void SeedKindEmbedding::add(const std::int64_t* kinds, std::int64_t count, float* x) const {
  for (std::int64_t i = 0; i < count; ++i) {
    const float* more = weight_.data() + kinds[i] * channels_;
    for (std::int64_t c = 0; c < channels_; ++c) x[i * channels_ + c] += more[c];
  }
}

}  // namespace nmrf
