#include "matching/tiles.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "core/check.h"
#include "core/quantile.h"

namespace nmrf {
namespace {

constexpr int kMargin = 64;  // px that a tile sees beyond its part; the coarse grid has cells of 8
constexpr int kLeastPart = 64;   // px
constexpr int kMostTiles = 128;  // to a side

int rounded_up(int value) { return (value + 7) / 8 * 8; }

// How one side of the images is cut.
struct Cut {
  int count = 1, part = 0, tile = 0;  // px

  Cut(int size, int count_, int before, int after) : count(count_) {
    part = count == 1 ? size : rounded_up((size + count - 1) / count);
    tile = count == 1 ? size : std::min(size, rounded_up(before + part + after));
  }
};

void copy(const FloatMap& from, const Tile& tile, float add, FloatMap& to) {
  for (int y = tile.top; y < tile.bottom; ++y) {
    const float* row = from.row(y - tile.y) + (tile.left - tile.x);
    std::transform(row, row + (tile.right - tile.left), to.row(y) + tile.left,
                   [&](float value) { return value + add; });
  }
}

// Columns from x on, of the size of `to`; those beyond the image repeat its first or last one.
void crop_image(const Image& from, int x, int y, Image& to) {
  for (int row = 0; row < to.height(); ++row) {
    const std::uint8_t* source = from.row(y + row);
    std::uint8_t* target = to.row(row);
    for (int i = 0; i < to.width(); ++i)
      std::copy_n(source + 3 * std::clamp(x + i, 0, from.width() - 1), 3, target + 3 * i);
  }
}

}  // namespace

Tiling choose_tiling(EnginePass& pass, int width, int height, bool guided, int reach,
                     std::size_t room) {
  if (pass.memory(width, height, guided) <= room) return {};
  struct Choice {
    Cut columns, rows;
    double pixels() const { return 1.0 * columns.tile * rows.tile; }
    double work() const { return pixels() * columns.count * rows.count; }
  };
  std::vector<Choice> choices;
  for (int columns = 1; columns <= kMostTiles && width / columns >= kLeastPart; ++columns)
    for (int rows = 1; rows <= kMostTiles && height / rows >= kLeastPart; ++rows)
      choices.push_back(
          {Cut(width, columns, kMargin + reach, kMargin), Cut(height, rows, kMargin, kMargin)});
  std::stable_sort(choices.begin(), choices.end(),
                   [](const Choice& a, const Choice& b) { return a.work() < b.work(); });
  // Buffers grow with the pixels or faster: what does not fit rules out all that is larger.
  double too_many = INFINITY;
  std::size_t least = SIZE_MAX;
  for (const Choice& choice : choices) {
    if (choice.pixels() >= too_many) continue;
    const std::size_t needed = pass.memory(choice.columns.tile, choice.rows.tile, guided);
    least = std::min(least, needed);
    if (needed > room) {
      too_many = choice.pixels();
      continue;
    }
    Tiling tiling{choice.columns.tile, choice.rows.tile, {}};
    for (int row = 0; row < choice.rows.count; ++row)
      for (int column = 0; column < choice.columns.count; ++column) {
        Tile tile;
        tile.left = column * choice.columns.part;
        tile.top = row * choice.rows.part;
        tile.right = std::min(width, tile.left + choice.columns.part);
        tile.bottom = std::min(height, tile.top + choice.rows.part);
        if (tile.left >= tile.right || tile.top >= tile.bottom) continue;
        tile.x = std::clamp(tile.left - kMargin - reach, 0, width - tiling.width);
        tile.y = std::clamp(tile.top - kMargin, 0, height - tiling.height);
        tiling.tiles.push_back(tile);
      }
    return tiling;
  }
  fail(ErrorKind::kDevice,
       "the memory limit leaves {} MB for the network, but even the smallest tiles of a {}x{} pair "
       "need {} MB",
       room >> 20, width, height, least == SIZE_MAX ? 0 : (least >> 20) + 1);
}

// Returns by how much the disparities of the tile are smaller than those of the image.
int TiledPass::crop(const PassInput& input, const Tiling& tiling, const Tile& tile, int max_disp) {
  left_.resize(tiling.width, tiling.height);
  right_.resize(tiling.width, tiling.height);
  int shift = 0;
  if (input.guide) {
    guide_.resize(tiling.width, tiling.height);
    for (int y = 0; y < tiling.height; ++y)
      std::copy_n(input.guide->row(tile.y + y) + tile.x, tiling.width, guide_.row(y));
    sorted_.assign(guide_.begin(), guide_.end());
    constexpr double kFew = 0.005;
    constexpr float kSpare = 16;  // px, for what the guide does not know
    const float nearest = quantile(sorted_, 1 - kFew) + kSpare;
    if (nearest > static_cast<float>(max_disp - 8)) {
      const float room = std::max(0.0f, quantile(sorted_, kFew) - kSpare);
      shift = static_cast<int>(room) / 8 * 8;
      for (float& value : guide_) value = std::max(0.0f, value - static_cast<float>(shift));
    }
  }
  crop_image(*input.left, tile.x, tile.y, left_);
  crop_image(*input.right, tile.x - shift, tile.y, right_);
  return shift;
}

void TiledPass::run(EnginePass& pass, const PassInput& input, const Tiling& tiling, int max_disp,
                    Disparity& result) {
  check(!input.keep_labels, ErrorKind::kUsage,
        "candidate labels are kept only of pairs that are matched as a whole; allow more memory");
  const int width = input.left->width(), height = input.left->height();
  result.map.resize(width, height);
  result.posterior.resize(width, height);
  using Maps = std::array<FloatMap*, 3>;
  auto maps_of = [](PassEvidence& e) { return Maps{&e.spread, &e.refined, &e.guided}; };
  PassInput part = input;
  part.left = &left_;
  part.right = &right_;
  part.guide = input.guide ? &guide_ : nullptr;
  part.evidence = input.evidence ? &evidence_ : nullptr;
  std::size_t done = 0;
  if (input.on_stage)
    part.on_stage = [&](double share, const char* stage) {
      input.on_stage((static_cast<double>(done) + share) / static_cast<double>(tiling.tiles.size()),
                     stage);
    };
  for (const Tile& tile : tiling.tiles) {
    const auto shift = static_cast<float>(crop(input, tiling, tile, max_disp));
    pass.run(part, part_);
    copy(part_.map, tile, shift, result.map);
    copy(part_.posterior, tile, 0, result.posterior);
    if (input.evidence) {
      const Maps all = maps_of(*input.evidence), some = maps_of(evidence_);
      for (std::size_t i = 0; i < all.size(); ++i) {
        all[i]->resize(width, height);
        copy(*some[i], tile, 0, *all[i]);
      }
    }
    ++done;
  }
}

}  // namespace nmrf
