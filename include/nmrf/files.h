// Image and disparity files (library nmrf_io: libpng, libjpeg-turbo, libtiff, libwebp).
#pragma once

#include <filesystem>
#include <string>

#include "nmrf/export.h"
#include "nmrf/image.h"
#include "nmrf/map.h"

namespace nmrf {

// Reads PNG, JPEG, TIFF, PPM/PGM, WebP or BMP as it is stored: 1 to 4 channels, 8 or 16 bits, RGB
// order; palettes are expanded. EXIF orientation is ignored: it would break the rectification of a
// pair. Throws Error(kInput) naming the file when it is missing, no image or truncated, and
// Error(kDevice) for more pixels than the stated limit.
NMRF_API Image read_image(const std::filesystem::path& path);

// Writes an image of 1, 3 or 4 channels, 8 bits (PNG and TIFF: or 16), atomically. The format comes
// from the extension (.png, .jpg, .webp, .bmp, .tiff, .ppm, .pgm); another one is an Error(kUsage).
NMRF_API void write_image(const std::filesystem::path& path, const ImageView& image);

// Conversion of integer files to disparity in pixels.
struct DisparityScale {
  double divisor = 256.0;  // disparity = value / divisor
  bool zero_is_invalid = true;
};

// Reads .pfm, .npy (float32/float64, [H,W]), .tif/.tiff (32-bit float, or 16-/8-bit by `scale`) and
// .png and .pgm (16- or 8-bit by `scale`). Unknown pixels (inf, NaN, zero in integer files)
// become kInvalidDisparity; finite values of float files are kept unchanged, including negative
// ones (some data sets store -d). Throws Error(kInput).
NMRF_API FloatMap read_disparity(const std::filesystem::path& path, DisparityScale scale = {});

// Writes by extension: .pfm (little-endian, invalid = inf), .png (16-bit, x256, valid pixels
// clamped to 1..65535, invalid 0), .npy ('<f4'), .tif/.tiff (32-bit float). Every non-finite value
// counts as invalid. Atomic.
NMRF_API void write_disparity(const std::filesystem::path& path, const FloatMap& disparity);

// True for an extension (with the dot, any case) that write_disparity supports.
NMRF_API bool is_disparity_extension(const std::string& extension);

// Depth in metres: .png (16-bit millimetres), .npy, .tiff or .pfm. Atomic.
NMRF_API void write_depth(const std::filesystem::path& path, const FloatMap& depth);
NMRF_API bool is_depth_extension(const std::string& extension);

}  // namespace nmrf
