// Reading photographs of any common kind into one form.
#pragma once

#include <filesystem>
#include <opencv2/core.hpp>

namespace nmrf {

// Reads PNG, JPEG, TIFF, PPM/PGM, WebP or BMP as CV_8UC3 in BGR order. Grey images are repeated into
// three channels, alpha is dropped, 16-bit values are divided by 257 (65535 -> 255), never wrapped.
// EXIF orientation is ignored: it would break the rectification of a pair.
// Throws Error(kInput) naming the file when it is missing, not an image, or truncated.
cv::Mat read_image(const std::filesystem::path& path);

// The same conversion for an image that is in memory already (1, 3 or 4 channels, 8 or 16 bit; BGR
// order for colour). `name` stands for it in messages.
cv::Mat to_bgr8(const cv::Mat& image, const std::string& name);

// Writes an 8-bit image (format from the extension), atomically.
void write_image(const std::filesystem::path& path, const cv::Mat& image);

}  // namespace nmrf
