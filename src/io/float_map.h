// Files that hold one float a pixel; shared by disparity and depth.
#pragma once

#include <filesystem>
#include <opencv2/core.hpp>
#include <string>

namespace nmrf {

// ".pfm", ".npy", ".tif" and ".tiff" (lower case).
bool is_float_map_extension(const std::string& extension);

// Writes CV_32FC1 unchanged, by one of these extensions. Atomic.
void write_float_map(const std::filesystem::path& path, const cv::Mat& map);

// Writes CV_32FC1 as a 16-bit PNG of round(value * scale), clamped to 1..65535 so that no valid
// pixel turns into the mark of an invalid one; what is not finite becomes 0. Atomic.
void write_png16(const std::filesystem::path& path, const cv::Mat& map, double scale);

}  // namespace nmrf
