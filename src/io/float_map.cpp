#include "io/float_map.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/check.h"
#include "io/codec.h"
#include "io/npy.h"
#include "io/pfm.h"

namespace nmrf {
namespace fs = std::filesystem;

bool is_float_map_extension(const std::string& extension) {
  return extension == ".pfm" || extension == ".npy" || extension == ".tif" || extension == ".tiff";
}

void write_float_map(const fs::path& path, const FloatMap& map) {
  const std::string extension = lower_extension(path);
  check(is_float_map_extension(extension), ErrorKind::kUsage,
        "{}: float maps are written as .pfm, .npy or .tiff, not as '{}'.", path.string(),
        extension);
  if (extension == ".pfm")
    write_pfm(path, map);
  else if (extension == ".npy")
    write_npy(path, {map.height(), map.width()}, map.data());
  else
    write_float_tiff(path, map);
}

void write_png16(const fs::path& path, const FloatMap& map, double scale) {
  Map<std::uint16_t> image(map.width(), map.height());
  std::transform(map.begin(), map.end(), image.begin(), [scale](float value) {
    return std::isfinite(value)
               ? static_cast<std::uint16_t>(std::clamp(std::round(value * scale), 1.0, 65535.0))
               : std::uint16_t{0};
  });
  encode_picture(path, {image.data(), image.width(), image.height(), 0, 1, 16});
}

}  // namespace nmrf
