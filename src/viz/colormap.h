// Colour pictures of disparity maps, for eyes only: no number can be read back from them.
#pragma once

#include <array>
#include <optional>
#include <utility>

#include "core/fields.h"
#include "nmrf/image.h"
#include "nmrf/map.h"

namespace nmrf {

enum class Colormap { kTurbo, kInferno, kJet, kKitti };

template <>
struct EnumNames<Colormap> {
  static constexpr std::array<std::pair<Colormap, const char*>, 4> values = {
      {{Colormap::kTurbo, "turbo"},
       {Colormap::kInferno, "inferno"},
       {Colormap::kJet, "jet"},
       {Colormap::kKitti, "kitti"}}};
};

// The disparities, in pixels, that take the first and the last colour.
struct ColorRange {
  float lo = 0;
  float hi = 1;
};

// The range between the 1 % and the 99 % quantile of the valid pixels of a disparity map, in
// pixels; never empty. A map without valid pixels gives [0, 1].
ColorRange robust_range(const FloatMap& disparity);

// A picture, 8-bit RGB, of a disparity map in pixels. Values outside `range`
// take its nearest end; invalid pixels are black. Without a range robust_range() is taken; for a
// sequence give one range for all, or the colours flicker. KITTI's own pictures use [0, largest
// disparity].
Image colorize(const FloatMap& disparity, Colormap map, std::optional<ColorRange> range = {});

}  // namespace nmrf
