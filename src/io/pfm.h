// Portable float maps: the disparity format of Middlebury, ETH3D and SceneFlow.
#pragma once

#include <filesystem>

#include "nmrf/map.h"

namespace nmrf {

// Reads a map, top row first, values untouched (inf and NaN included). Lenient about
// white space, line ends and comments (from '#' to the end of a line) in the header, and takes
// either byte order; of a three-channel file (PF) the first channel counts. A file whose length
// does not fit its header is an Error(kInput).
FloatMap read_pfm(const std::filesystem::path& path);

// Writes one channel (Pf), little-endian, atomically.
void write_pfm(const std::filesystem::path& path, const FloatMap& map);

}  // namespace nmrf
