// Reading photographs of any common kind into one form.
#pragma once

#include <filesystem>
#include <opencv2/core.hpp>
#include <string>

namespace nmrf {

// Reads PNG, JPEG, TIFF, PPM/PGM, WebP or BMP as CV_8UC3 in BGR order. Grey images are repeated
// into three channels, alpha is dropped, 16-bit values are divided by 257 (65535 -> 255), never
// wrapped. EXIF orientation is ignored: it would break the rectification of a pair. Throws
// Error(kInput) naming the file when it is missing, not an image, or truncated.
cv::Mat read_image(const std::filesystem::path& path);

// The same conversion for an image that is in memory already (1, 3 or 4 channels, or grey with
// alpha; 8 or 16 bit; BGR order for colour). The result shares the data of an image that is CV_8UC3
// already. `name` stands for it in messages. Throws Error(kInput) for anything else.
cv::Mat to_bgr8(const cv::Mat& image, const std::string& name);

// Writes an 8-bit image of 1, 3 or 4 channels, atomically. The format comes from the extension
// (.png, .jpg, .webp, .bmp, .tiff, .ppm); another one is an Error(kUsage).
void write_image(const std::filesystem::path& path, const cv::Mat& image);

}  // namespace nmrf
