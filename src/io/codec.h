// Decoding and encoding of picture files in memory, with the checks that OpenCV leaves out.
#pragma once

#include <filesystem>
#include <opencv2/core.hpp>
#include <string>

namespace nmrf {

// The extension in lower case, with the dot: ".png".
std::string lower_extension(const std::filesystem::path& path);

// Decodes PNG, JPEG, TIFF, PPM/PGM, WebP or BMP without any conversion: depth and channels as in
// the file (palettes expanded, colour in BGR order, EXIF orientation ignored). The kind is found by
// content. A truncated or damaged file, and a header that promises more pixels than the file can
// hold, throw Error(kInput) naming the file.
cv::Mat decode_picture(const std::filesystem::path& path);

// Encodes by the extension of `path` and writes atomically.
void encode_picture(const std::filesystem::path& path, const cv::Mat& image);

}  // namespace nmrf
