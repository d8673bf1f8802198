// Decoding and encoding of image files: one entry for all formats.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "nmrf/image.h"
#include "nmrf/map.h"

namespace nmrf {

// The extension in lower case, with the dot: ".png".
std::string lower_extension(const std::filesystem::path& path);

// A decoded file: either an image or, from a TIFF file of 32-bit floats, a map.
struct Picture {
  Image image;      // 1 to 4 channels, 8 or 16 bits, RGB order; empty when `floats` is not
  FloatMap floats;  // values untouched
  int white = 255;  // the largest value: 255 or 65535, or what a PPM/PGM header says
};

// Decodes PNG, JPEG, TIFF, PPM/PGM, WebP or BMP without any conversion: depth and channels as in
// the file (palettes expanded, EXIF orientation ignored). The kind is found by content. A truncated
// or damaged file, and a header that promises more pixels than the file can hold, throw
// Error(kInput) naming the file; more than kMaxPixels, or more than fits into memory,
// Error(kDevice).
Picture decode_picture(const std::filesystem::path& path);
// The same from the bytes of a file; `name` stands for it in messages.
Picture decode_picture(std::string_view content, const std::string& name);
// As read_image(), from the bytes of a file.
Image decode_image(std::string_view content, const std::string& name);

// Encodes by the extension of `path` and writes atomically. The image is as write_image takes it.
void encode_picture(const std::filesystem::path& path, const ImageView& image);

// A TIFF file of 32-bit floats, one channel, not compressed. Atomic.
void write_float_tiff(const std::filesystem::path& path, const FloatMap& map);

}  // namespace nmrf
