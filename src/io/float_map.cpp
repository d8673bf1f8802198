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

void write_float_map(const fs::path& path, const cv::Mat& map) {
  const std::string extension = lower_extension(path);
  if (extension == ".pfm") {
    write_pfm(path, map);
  } else if (extension == ".npy") {
    const cv::Mat whole = map.isContinuous() ? map : map.clone();
    write_npy(path, {map.rows, map.cols}, whole.ptr<float>());
  } else {
    check(is_float_map_extension(extension), ErrorKind::kUsage,
          "{}: float maps are written as .pfm, .npy or .tiff, not as '{}'.", path.string(),
          extension);
    encode_picture(path, map);
  }
}

void write_png16(const fs::path& path, const cv::Mat& map, double scale) {
  cv::Mat image(map.size(), CV_16UC1);
  for (int row = 0; row < map.rows; ++row) {
    const auto* values = map.ptr<float>(row);
    auto* target = image.ptr<std::uint16_t>(row);
    for (int col = 0; col < map.cols; ++col)
      target[col] = std::isfinite(values[col]) ? static_cast<std::uint16_t>(std::clamp(
                                                     std::round(values[col] * scale), 1.0, 65535.0))
                                               : std::uint16_t{0};
  }
  encode_picture(path, image);
}

}  // namespace nmrf
