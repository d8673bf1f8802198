#include "io/depth.h"

#include <cmath>
#include <limits>

#include "core/check.h"
#include "io/codec.h"
#include "io/float_map.h"

namespace nmrf {
namespace fs = std::filesystem;

void write_depth(const fs::path& path, const cv::Mat& depth) {
  const std::string extension = lower_extension(path);
  check(
      is_depth_extension(extension), ErrorKind::kUsage,
      "{}: depth maps are written as .png (16-bit millimetres), .npy, .tiff or .pfm, not as '{}'.",
      path.string(), extension);
  check(!depth.empty() && depth.dims == 2 && depth.type() == CV_32FC1, ErrorKind::kUsage,
        "{}: a depth map is a 32-bit float image of one channel (CV_32FC1), in metres.",
        path.string());
  cv::Mat clean = depth.clone();
  for (int row = 0; row < clean.rows; ++row) {
    auto* values = clean.ptr<float>(row);
    for (int col = 0; col < clean.cols; ++col)
      if (!std::isfinite(values[col]) || values[col] <= 0)
        values[col] = std::numeric_limits<float>::infinity();
  }
  if (extension == ".png")
    write_png16(path, clean, 1000.0);
  else
    write_float_map(path, clean);
}

bool is_depth_extension(const std::string& extension) {
  const std::string lower = lower_extension("x" + extension);
  return lower == ".png" || is_float_map_extension(lower);
}

}  // namespace nmrf
