#include <cmath>
#include <limits>

#include "core/check.h"
#include "io/codec.h"
#include "io/float_map.h"
#include "nmrf/files.h"

namespace nmrf {
namespace fs = std::filesystem;

void write_depth(const fs::path& path, const FloatMap& depth) {
  const std::string extension = lower_extension(path);
  check(
      is_depth_extension(extension), ErrorKind::kUsage,
      "{}: depth maps are written as .png (16-bit millimetres), .npy, .tiff or .pfm, not as '{}'.",
      path.string(), extension);
  check(!depth.empty(), ErrorKind::kUsage, "{}: the depth map is empty.", path.string());
  FloatMap clean = depth;
  for (float& value : clean)
    if (!std::isfinite(value) || value <= 0) value = std::numeric_limits<float>::infinity();
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
