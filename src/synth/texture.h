// Colour of a surface as a function of texture coordinates.
#pragma once

#include <array>
#include <cstdint>

#include "synth/photos.h"
#include "synth/vec.h"

namespace nmrf::synth {

enum class Pattern {
  kPlain,
  kGradient,  // slow waves of colour
  kFractal,   // clouds, plaster, concrete
  kRidged,    // veins, cracks
  kMarble,    // bands bent by noise
  kCells,     // cobbles, giraffe, stained glass
  kSpeckle,   // asphalt, granite, terrazzo, gravel
  kBricks,
  kTiles,
  kPlanks,  // boards with grain
  kWood,    // one piece of wood
  kChecks,
  kTartan,
  kStripes,  // regular
  kBars,     // of random width and colour
  kZigzag,
  kDots,
  kPrint,    // a repeated figure, as on cloth and wallpaper
  kWeave,    // threads
  kMap,      // areas with outlines
  kGlyphs,   // rows of signs
  kPoster,   // a few large shapes
  kWindows,  // a flat facade
  kTruchet,  // arcs that join at random
  kLeaves,   // overlapping leaves, grass
  kStatic,   // a random grey per cell
  kPhoto,
};

// Texture coordinates are metres on the surface; everything is filtered to the size of a pixel.
struct Texture {
  Pattern pattern = Pattern::kPlain;
  float frequency = 1;  // cells per metre; for photographs: pictures (heights) per metre
  float stretch = 1;    // cells are this much longer along u
  float cosine = 1, sine = 0;
  Vec2 offset;  // in cells
  std::uint32_t seed = 0;
  std::array<Vec3, 4> colors{};  // linear
  float a = 0.5f, b = 0.5f;      // what they mean depends on the pattern
  int octaves = 4;
  float gain = 0.5f;
  float grain = 0;  // fine variation of brightness on top, relative
  float grain_frequency = 40;
  float dirt = 0;  // large stains on top, relative
  float dirt_frequency = 0.5f;
  float detail = 0;              // light and dark at every scale down to the pixel, relative
  const Photo* photo = nullptr;  // kPhoto
  float contrast = 1;            // kPhoto: less pulls towards colors[0]
  Vec3 tint{1, 1, 1};            // multiplies the result

  void rotate(float angle) { cosine = std::cos(angle), sine = std::sin(angle); }
  // Linear colour at `uv`; `width` is the size of a pixel on the surface in metres.
  Vec3 color(Vec2 uv, float width) const;
};

}  // namespace nmrf::synth
