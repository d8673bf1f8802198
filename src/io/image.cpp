#include "nmrf/image.h"

#include <algorithm>
#include <array>
#include <opencv2/imgproc.hpp>
#include <string_view>

#include "core/check.h"
#include "io/codec.h"

namespace nmrf {
namespace fs = std::filesystem;

cv::Mat read_image(const fs::path& path) { return to_bgr8(decode_picture(path), path.string()); }

cv::Mat to_bgr8(const cv::Mat& image, const std::string& name) {
  check(!image.empty() && image.dims == 2, ErrorKind::kInput, "{}: the image is empty.", name);
  check(
      image.depth() == CV_8U || image.depth() == CV_16U, ErrorKind::kInput,
      "{}: holds {} values; expected 8 or 16 bits without sign. If it is a disparity or depth map, "
      "it cannot serve as an image.",
      name, cv::depthToString(image.depth()));
  cv::Mat narrow = image;
  // 65535 / 257 = 255: the whole range of 16 bits becomes the whole range of 8.
  if (image.depth() == CV_16U) image.convertTo(narrow, CV_8U, 1.0 / 257.0);
  cv::Mat bgr;
  switch (narrow.channels()) {
    case 1:
      cv::cvtColor(narrow, bgr, cv::COLOR_GRAY2BGR);
      break;
    case 2: {  // grey and alpha
      cv::Mat grey;
      cv::extractChannel(narrow, grey, 0);
      cv::cvtColor(grey, bgr, cv::COLOR_GRAY2BGR);
      break;
    }
    case 3:
      bgr = narrow;
      break;
    case 4:
      cv::cvtColor(narrow, bgr, cv::COLOR_BGRA2BGR);
      break;
    default:
      fail(ErrorKind::kInput,
           "{}: has {} channels; expected 1 (grey), 3 (colour) or 4 (with alpha).", name,
           narrow.channels());
  }
  return bgr;
}

void write_image(const fs::path& path, const cv::Mat& image) {
  constexpr std::array<std::string_view, 10> known = {".png", ".jpg",  ".jpeg", ".webp", ".bmp",
                                                      ".tif", ".tiff", ".ppm",  ".pgm",  ".pnm"};
  const std::string extension = lower_extension(path);
  check(std::find(known.begin(), known.end(), extension) != known.end(), ErrorKind::kUsage,
        "{}: no image format is known by the extension '{}'. Use .png, .jpg, .webp, .bmp, .tiff or "
        ".ppm.",
        path.string(), extension);
  check(!image.empty() && image.dims == 2 && image.depth() == CV_8U &&
            (image.channels() == 1 || image.channels() == 3 || image.channels() == 4),
        ErrorKind::kUsage, "{}: only 8-bit images of 1, 3 or 4 channels can be written.",
        path.string());
  encode_picture(path, image);
}

}  // namespace nmrf
