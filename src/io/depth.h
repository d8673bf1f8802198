// Depth maps in files.
#pragma once

#include <filesystem>
#include <opencv2/core.hpp>
#include <string>

namespace nmrf {

// Writes a depth map, CV_32FC1 in metres, by extension: .png (16-bit millimetres, valid pixels
// clamped to 1..65535, invalid 0), .npy, .tif/.tiff, .pfm (32-bit float metres, invalid +infinity).
// A depth that is not finite or not positive is invalid. Atomic.
void write_depth(const std::filesystem::path& path, const cv::Mat& depth);

// True for an extension (with the dot, any case) that write_depth knows.
bool is_depth_extension(const std::string& extension);

}  // namespace nmrf
