// Coloured point clouds in PLY files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace nmrf {

// In metres, in the frame of the left camera: +x right, +y down, +z forward.
struct ColoredPoint {
  float x = 0;
  float y = 0;
  float z = 0;
  std::uint8_t red = 0;
  std::uint8_t green = 0;
  std::uint8_t blue = 0;
};

// Writes binary little-endian PLY, 15 bytes a point. Atomic.
void write_ply(const std::filesystem::path& path, const std::vector<ColoredPoint>& points);

}  // namespace nmrf
