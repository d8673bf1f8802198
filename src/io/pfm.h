// Portable float maps: the disparity format of Middlebury, ETH3D and SceneFlow.
#pragma once

#include <filesystem>
#include <opencv2/core.hpp>

namespace nmrf {

// Reads a map as CV_32FC1, top row first, values untouched (inf and NaN included). Lenient about
// white space and line ends in the header and takes either byte order; of a three-channel file (PF)
// the first channel counts. A file whose length does not fit its header is an Error(kInput).
cv::Mat read_pfm(const std::filesystem::path& path);

// Writes CV_32FC1 as one channel (Pf), little-endian, atomically.
void write_pfm(const std::filesystem::path& path, const cv::Mat& map);

}  // namespace nmrf
