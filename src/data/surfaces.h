// Classes of surfaces in rendered pairs: what is hard to match about them.
#pragma once

#include <array>
#include <cstdint>

namespace nmrf {

enum class Surface : std::uint8_t {
  kSky,
  kMatte,       // textured, none of the others
  kPlain,       // one colour, hardly any texture
  kGlossy,      // highlights that differ between the views
  kReflecting,  // shows its surroundings: panes, panels, mirrors
  kGlass,       // shows what is behind it
  kLeaves,      // light falls through: foliage, lampshades
};

inline constexpr std::array<const char*, 7> kSurfaceNames{"sky",        "matte", "plain", "glossy",
                                                          "reflecting", "glass", "leaves"};

}  // namespace nmrf
