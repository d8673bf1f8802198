// Disparity maps: what the matcher returns, and the file formats they live in.
//
// A disparity map is CV_32FC1, in pixels of the image it belongs to, d = x_left - x_right >= 0 for
// the left view. An invalid pixel holds +infinity.
#pragma once

#include <filesystem>
#include <limits>
#include <opencv2/core.hpp>
#include <string>

namespace nmrf {

inline constexpr float kInvalidDisparity = std::numeric_limits<float>::infinity();

// The result of matching one pair; the first three maps have one size.
struct Disparity {
  cv::Mat map;         // CV_32FC1, pixels
  cv::Mat confidence;  // CV_32FC1 in [0, 1]: posterior probability of the winning label
  cv::Mat occluded;    // CV_8UC1, 255 where the left-right check failed; empty unless asked for
  // The candidate labels that inference chose from, and the seeds they grew from, best seed first:
  // CV_32FC(k), one element a cell of 8 x 8 pixels of the images after scaling, in their pixels.
  // Empty unless asked for.
  cv::Mat labels, seeds;
};

// How the numbers of an integer image become pixels of disparity.
struct DisparityScale {
  double divisor = 256.0;  // disparity = value / divisor
  bool zero_is_invalid = true;
};

// Reads .pfm, .npy (float32/float64, [H,W]), .tif/.tiff (32-bit float, or 16-/8-bit by `scale`) and
// .png and .pgm (16- or 8-bit by `scale`). What the format marks as unknown (inf, NaN, zero in
// integer files) becomes kInvalidDisparity; finite values of float files are kept as they are,
// negative ones too (some data sets store -d). Throws Error(kInput).
cv::Mat read_disparity(const std::filesystem::path& path, DisparityScale scale = {});

// Writes by extension: .pfm (little-endian, invalid = inf), .png (16-bit, x256, valid pixels
// clamped to 1..65535, invalid 0), .npy ('<f4'), .tif/.tiff (32-bit float). Every non-finite value
// counts as invalid. Atomic.
void write_disparity(const std::filesystem::path& path, const cv::Mat& disparity);

// True for an extension (with the dot, any case) that write_disparity knows.
bool is_disparity_extension(const std::string& extension);

}  // namespace nmrf
