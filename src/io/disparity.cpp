#include "nmrf/disparity.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "core/check.h"
#include "io/codec.h"
#include "io/float_map.h"
#include "io/npy.h"
#include "io/pfm.h"

namespace nmrf {
namespace fs = std::filesystem;

namespace {

constexpr double kPngScale = 256.0;  // of KITTI

// inf, -inf and NaN all mean "unknown"; in memory that is +infinity.
void mark_invalid(cv::Mat& map) {
  for (int row = 0; row < map.rows; ++row) {
    auto* values = map.ptr<float>(row);
    for (int col = 0; col < map.cols; ++col)
      if (!std::isfinite(values[col])) values[col] = kInvalidDisparity;
  }
}

template <class T>
cv::Mat from_integers(const cv::Mat& image, const DisparityScale& scale) {
  cv::Mat map(image.size(), CV_32FC1);
  for (int row = 0; row < image.rows; ++row) {
    const T* values = image.ptr<T>(row);
    auto* target = map.ptr<float>(row);
    for (int col = 0; col < image.cols; ++col)
      target[col] = values[col] == 0 && scale.zero_is_invalid
                        ? kInvalidDisparity
                        : static_cast<float>(values[col] / scale.divisor);
  }
  return map;
}

cv::Mat read_picture(const fs::path& path, const DisparityScale& scale) {
  cv::Mat image = decode_picture(path);
  check(
      image.channels() == 1, ErrorKind::kInput,
      "{}: has {} channels: a colour picture, not a disparity map. Expected one channel of 8 or 16 "
      "bits (or 32-bit float in TIFF); from the tool that made it, ask for 16-bit PNG, PFM or npy.",
      path.string(), image.channels());
  switch (image.depth()) {
    case CV_8U:
      return from_integers<std::uint8_t>(image, scale);
    case CV_16U:
      return from_integers<std::uint16_t>(image, scale);
    case CV_32F:
      mark_invalid(image);
      return image;
    default:
      fail(ErrorKind::kInput,
           "{}: holds {} values; expected 8 or 16 bits without sign, or 32-bit float.",
           path.string(), cv::depthToString(image.depth()));
  }
}

cv::Mat read_array(const fs::path& path) {
  const NpyArray array = read_npy(path);
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  check(array.shape.size() == 2 && array.count() > 0 && array.shape[0] <= kMost &&
            array.shape[1] <= kMost,
        ErrorKind::kInput, "{}: has shape {}; a disparity map has two dimensions, (height, width).",
        path.string(), npy_shape_text(array.shape));
  check(array.type == NpyType::kFloat32 || array.type == NpyType::kFloat64, ErrorKind::kInput,
        "{}: holds '{}'; a disparity map holds '<f4' or '<f8', in pixels.", path.string(),
        npy_type_name(array.type));
  cv::Mat map(static_cast<int>(array.shape[0]), static_cast<int>(array.shape[1]), CV_32FC1);
  if (array.type == NpyType::kFloat32)
    std::copy_n(array.data<float>(), array.count(), map.ptr<float>());
  else
    std::transform(array.data<double>(), array.data<double>() + array.count(), map.ptr<float>(),
                   [](double value) { return static_cast<float>(value); });
  mark_invalid(map);
  return map;
}

}  // namespace

cv::Mat read_disparity(const fs::path& path, DisparityScale scale) {
  check(std::isfinite(scale.divisor) && scale.divisor > 0, ErrorKind::kUsage,
        "{}: the divisor of a disparity file must be positive, not {}.", path.string(),
        scale.divisor);
  const std::string extension = lower_extension(path);
  if (extension == ".pfm") {
    cv::Mat map = read_pfm(path);
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

void write_disparity(const fs::path& path, const cv::Mat& disparity) {
  check(is_disparity_extension(lower_extension(path)), ErrorKind::kUsage,
        "{}: disparity maps are written as .pfm, .png (16-bit), .npy or .tiff, not as '{}'.",
        path.string(), lower_extension(path));
  check(!disparity.empty() && disparity.dims == 2 && disparity.type() == CV_32FC1,
        ErrorKind::kUsage, "{}: a disparity map is a 32-bit float image of one channel (CV_32FC1).",
        path.string());
  if (lower_extension(path) == ".png") {
    write_png16(path, disparity, kPngScale);
    return;
  }
  cv::Mat clean = disparity.clone();
  mark_invalid(clean);
  write_float_map(path, clean);
}

bool is_disparity_extension(const std::string& extension) {
  const std::string lower = lower_extension("x" + extension);
  return lower == ".png" || is_float_map_extension(lower);
}

}  // namespace nmrf
