// Stereo pairs of the tests' own making: textured planes with exact disparity.
#pragma once

#include <filesystem>
#include <opencv2/core.hpp>

#include "data/sample.h"

namespace nmrf::test {

// A background plane and a nearer rectangle, both slanted; the left view samples the right one at
// x - d, so that every left pixel matches exactly. Different for each seed.
Sample toy_pair(int height, int width, unsigned seed);

// Writes `count` pairs (PNG and PFM) below `folder` and returns the list file that names them.
std::filesystem::path write_toy_list(const std::filesystem::path& folder, int count, int height,
                                     int width);

}  // namespace nmrf::test
