#include "nmrf/disparity.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/check.h"
#include "io/codec.h"
#include "io/float_map.h"
#include "io/npy.h"
#include "io/pfm.h"
#include "nmrf/files.h"

namespace nmrf {
namespace fs = std::filesystem;

namespace {

constexpr double kPngScale = 256.0;  // of KITTI

// inf, -inf and NaN all mean "unknown"; in memory that is +infinity.
void mark_invalid(FloatMap& map) {
  for (float& value : map)
    if (!std::isfinite(value)) value = kInvalidDisparity;
}

template <class T>
FloatMap from_integers(const Image& image, const DisparityScale& scale) {
  FloatMap map(image.width(), image.height());
  for (int y = 0; y < image.height(); ++y) {
    const auto* values = reinterpret_cast<const T*>(image.row(y));
    std::transform(values, values + image.width(), map.row(y), [&](T value) {
      return value == 0 && scale.zero_is_invalid ? kInvalidDisparity
                                                 : static_cast<float>(value / scale.divisor);
    });
  }
  return map;
}

FloatMap read_picture(const fs::path& path, const DisparityScale& scale) {
  Picture picture = decode_picture(path);
  if (!picture.floats.empty()) {
    mark_invalid(picture.floats);
    return std::move(picture.floats);
  }
  const Image& image = picture.image;
  check(
      image.channels() == 1, ErrorKind::kInput,
      "{}: has {} channels: a colour picture, not a disparity map. Expected one channel of 8 or 16 "
      "bits (or 32-bit float in TIFF); from the tool that made it, ask for 16-bit PNG, PFM or npy.",
      path.string(), image.channels());
  return image.bits() == 8 ? from_integers<std::uint8_t>(image, scale)
                           : from_integers<std::uint16_t>(image, scale);
}

FloatMap read_array(const fs::path& path) {
  const NpyArray array = read_npy(path);
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  check(array.shape.size() == 2 && array.count() > 0 && array.shape[0] <= kMost &&
            array.shape[1] <= kMost,
        ErrorKind::kInput, "{}: has shape {}; a disparity map has two dimensions, (height, width).",
        path.string(), npy_shape_text(array.shape));
  check(array.type == NpyType::kFloat32 || array.type == NpyType::kFloat64, ErrorKind::kInput,
        "{}: holds '{}'; a disparity map holds '<f4' or '<f8', in pixels.", path.string(),
        npy_type_name(array.type));
  FloatMap map(static_cast<int>(array.shape[1]), static_cast<int>(array.shape[0]));
  if (array.type == NpyType::kFloat32)
    std::copy_n(array.data<float>(), array.count(), map.data());
  else
    std::transform(array.data<double>(), array.data<double>() + array.count(), map.data(),
                   [](double value) { return static_cast<float>(value); });
  mark_invalid(map);
  return map;
}

}  // namespace

FloatMap read_disparity(const fs::path& path, DisparityScale scale) {
  check(std::isfinite(scale.divisor) && scale.divisor > 0, ErrorKind::kUsage,
        "{}: the divisor of a disparity file must be positive, not {}.", path.string(),
        scale.divisor);
  const std::string extension = lower_extension(path);
  if (extension == ".pfm") {
    FloatMap map = read_pfm(path);
    mark_invalid(map);
    return map;
  }
  if (extension == ".npy") return read_array(path);
  if (extension == ".png" || extension == ".tif" || extension == ".tiff" || extension == ".pgm")
    return read_picture(path, scale);
  fail(ErrorKind::kInput,
       "{}: disparity maps are read from .pfm, .npy, .png, .pgm, .tif and .tiff files, not from "
       "'{}'.",
       path.string(), extension);
}

void write_disparity(const fs::path& path, const FloatMap& disparity) {
  check(is_disparity_extension(lower_extension(path)), ErrorKind::kUsage,
        "{}: disparity maps are written as .pfm, .png (16-bit), .npy or .tiff, not as '{}'.",
        path.string(), lower_extension(path));
  check(!disparity.empty(), ErrorKind::kUsage, "{}: the disparity map is empty.", path.string());
  if (lower_extension(path) == ".png") {
    write_png16(path, disparity, kPngScale);
    return;
  }
  FloatMap clean = disparity;
  mark_invalid(clean);
  write_float_map(path, clean);
}

bool is_disparity_extension(const std::string& extension) {
  const std::string lower = lower_extension("x" + extension);
  return lower == ".png" || is_float_map_extension(lower);
}

}  // namespace nmrf
