// WebP through libwebp: lossy and lossless files are read, lossless ones written.
#include <webp/decode.h>
#include <webp/encode.h>

#include <algorithm>

#include "core/check.h"
#include "io/formats.h"

namespace nmrf::formats {
namespace {

constexpr auto kKind = PictureKind::kWebp;

const char* status_text(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_NOT_ENOUGH_DATA:
      return "the file is truncated";
    case VP8_STATUS_OUT_OF_MEMORY:
      return "there is not enough memory";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return "it is of an unsupported variety";
    default:
      return "the data are damaged";
  }
}

int append(const std::uint8_t* from, std::size_t count, const WebPPicture* picture) {
  try {
    static_cast<std::string*>(picture->custom_ptr)
        ->append(reinterpret_cast<const char*>(from), count);
    return 1;
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

struct Source {
  Source() { WebPPictureInit(&picture); }
  ~Source() { WebPPictureFree(&picture); }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  WebPPicture picture;
};

}  // namespace

Picture decode_webp(std::string_view data, const std::string& name) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(data.data());
  WebPDecoderConfig config;
  if (!WebPInitDecoderConfig(&config)) fail(ErrorKind::kFailure, "libwebp does not fit its header");
  VP8StatusCode status = WebPGetFeatures(bytes, data.size(), &config.input);
  if (status != VP8_STATUS_OK) cannot_decode(name, kKind, status_text(status));
  check(!config.input.has_animation, ErrorKind::kInput,
        "{}: the WebP file is an animation, not one image. Save the frame you want as PNG.", name);
  const auto width = static_cast<std::uint64_t>(config.input.width);
  const auto height = static_cast<std::uint64_t>(config.input.height);
  const int channels = config.input.has_alpha ? 4 : 3;
  check_webp_plausible(name, width, height, data.size());
  Picture picture;
  picture.image = make_image(name, kKind, width, height, channels, 8, width * height * 4);
  Image& image = picture.image;
  config.output.colorspace = channels == 4 ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = image.data();
  config.output.u.RGBA.stride = static_cast<int>(image.row_bytes());
  config.output.u.RGBA.size = image.row_bytes() * static_cast<std::size_t>(image.height());
  status = WebPDecode(bytes, data.size(), &config);
  if (status != VP8_STATUS_OK) cannot_decode(name, kKind, status_text(status));
  return picture;
}

std::string encode_webp(const ImageView& image, const std::string& name) {
  check(image.width <= WEBP_MAX_DIMENSION && image.height <= WEBP_MAX_DIMENSION, ErrorKind::kUsage,
        "{}: a WebP image has at most {} pixels per side, this one {}x{}. Write PNG instead.", name,
        WEBP_MAX_DIMENSION, image.width, image.height);
  RowReader rows(image, image.channels == 4 ? 4 : 3);
  const std::size_t row_bytes = rows.row_bytes();
  std::vector<std::uint8_t> pixels(row_bytes * static_cast<std::size_t>(image.height));
  for (int y = 0; y < image.height; ++y)
    std::copy_n(rows.row(y), row_bytes, pixels.data() + row_bytes * static_cast<std::size_t>(y));
  WebPConfig config;
  Source source;
  std::string bytes;
  if (!WebPConfigInit(&config)) fail(ErrorKind::kFailure, "libwebp does not fit its header");
  config.lossless = 1;
  config.exact = 1;  // colours below transparent pixels too
  config.quality = 70;
  WebPPicture& picture = source.picture;
  picture.use_argb = 1;
  picture.width = image.width;
  picture.height = image.height;
  picture.writer = append;
  picture.custom_ptr = &bytes;
  const int stride = static_cast<int>(row_bytes);
  const bool imported = image.channels == 4 ? WebPPictureImportRGBA(&picture, pixels.data(), stride)
                                            : WebPPictureImportRGB(&picture, pixels.data(), stride);
  if (!imported || !WebPEncode(&config, &picture))
    cannot_encode(name, image,
                  fmt::format("libwebp gives error {}", static_cast<int>(picture.error_code)));
  return bytes;
}

}  // namespace nmrf::formats
