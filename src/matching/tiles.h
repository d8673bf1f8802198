// A pass in overlapping tiles, for images whose buffers would not fit into a memory limit.
//
// All tiles have one size, so that the buffers are planned once. A tile sees more than the part of
// the map that it gives: a margin on every side, and to its left also as far as matches may lie. A
// map of the whole pair guides the tiles, so that neighbours agree where they meet. Where that map
// lies beyond the disparities the network searches, the tile's right view is taken further left.
#pragma once

#include <cstddef>
#include <vector>

#include "matching/engine.h"

namespace nmrf {

struct Tile {
  int x = 0, y = 0;                              // its place in the images
  int left = 0, top = 0, right = 0, bottom = 0;  // what it gives: [left, right) x [top, bottom)
};

struct Tiling {
  int width = 0, height = 0;  // of a tile
  std::vector<Tile> tiles;
};

// The tiling of least work whose tiles need at most `room` bytes; no tiles: the images fit as a
// whole. guided: a guide is given. reach: how far left of a pixel its match may lie, px. Throws
// Error(kDevice) when no tiling fits.
Tiling choose_tiling(EnginePass& pass, int width, int height, bool guided, int reach,
                     std::size_t room);

class TiledPass {
 public:
  // Like pass.run(input, result), in the tiles of `tiling`; no labels. max_disp: the network's.
  void run(EnginePass& pass, const PassInput& input, const Tiling& tiling, int max_disp,
           Disparity& result);

 private:
  int crop(const PassInput& input, const Tiling& tiling, const Tile& tile, int max_disp);

  Image left_, right_;
  FloatMap guide_;
  Disparity part_;
  PassEvidence evidence_;
  std::vector<float> sorted_;
};

}  // namespace nmrf
