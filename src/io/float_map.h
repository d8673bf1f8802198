// Files that hold one float per pixel; shared by disparity and depth.
#pragma once

#include <filesystem>
#include <string>

#include "nmrf/map.h"

namespace nmrf {

// ".pfm", ".npy", ".tif" and ".tiff" (lower case).
bool is_float_map_extension(const std::string& extension);

// Writes the values unchanged, by one of these extensions. Atomic.
void write_float_map(const std::filesystem::path& path, const FloatMap& map);

// Writes a 16-bit PNG of round(value * scale), clamped to 1..65535 so that no valid pixel turns
// into the mark of an invalid one; what is not finite becomes 0. Atomic.
void write_png16(const std::filesystem::path& path, const FloatMap& map, double scale);

}  // namespace nmrf
