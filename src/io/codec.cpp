#include "io/codec.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <opencv2/imgcodecs.hpp>
#include <string_view>
#include <vector>

#include "core/check.h"
#include "core/file.h"
#include "io/picture_check.h"

namespace nmrf {
namespace fs = std::filesystem;

std::string lower_extension(const fs::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension;
}

cv::Mat decode_picture(const fs::path& path) {
  const std::string content = read_file(path);
  const PictureKind kind = check_picture(content, path.string());
  // imdecode wants a Mat; this one only points at the bytes, which it does not change.
  const cv::Mat bytes(1, static_cast<int>(content.size()), CV_8UC1,
                      const_cast<char*>(content.data()));
  cv::Mat image;
  std::string reason = "the data are damaged or of an unsupported variety";
  try {
    image = cv::imdecode(bytes, cv::IMREAD_UNCHANGED);
  } catch (const cv::Exception& error) {
    reason = error.err;
  } catch (const std::bad_alloc&) {
    reason = "not enough memory for its size";
  }
  check(!image.empty(), ErrorKind::kInput,
        "{}: the {} cannot be decoded: {}. Open it in a viewer, or save it again as PNG.",
        path.string(), picture_kind_name(kind), reason);
  return image;
}

void encode_picture(const fs::path& path, const cv::Mat& image) {
  std::vector<std::uint8_t> bytes;
  std::string reason = "the encoder refused it";
  bool ok = false;
  try {
    ok = cv::imencode(lower_extension(path), image, bytes);
  } catch (const cv::Exception& error) {
    reason = error.err;
  }
  check(ok, ErrorKind::kFailure, "{}: the image of {}x{} pixels cannot be encoded: {}",
        path.string(), image.cols, image.rows, reason);
  write_file(path, bytes);
}

}  // namespace nmrf
