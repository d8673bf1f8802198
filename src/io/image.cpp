#include "nmrf/image.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

#include "core/check.h"
#include "core/file.h"
#include "io/codec.h"
#include "io/picture_check.h"
#include "nmrf/files.h"

namespace nmrf {
namespace fs = std::filesystem;

namespace {

// Stretches values up to `white`, as a PPM or PGM file may hold, over all 8 or 16 bits.
template <class T>
void stretch(Image& image, int white) {
  constexpr unsigned kTop = std::numeric_limits<T>::max();
  const auto old = static_cast<unsigned>(white);
  auto* values = reinterpret_cast<T*>(image.data());
  const std::size_t count =
      image.row_bytes() / sizeof(T) * static_cast<std::size_t>(image.height());
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<T>((std::uint64_t{values[i]} * kTop + old / 2) / old);
}

}  // namespace

Image read_image(const fs::path& path) {
  return decode_image(read_file(path, ErrorKind::kInput, kMaxPictureBytes), path.string());
}

Image decode_image(std::string_view content, const std::string& name) {
  Picture picture = decode_picture(content, name);
  check(picture.floats.empty(), ErrorKind::kInput,
        "{}: holds 32-bit float values; expected 8 or 16 bits without sign. If it is a disparity "
        "or depth map, it cannot serve as an image.",
        name);
  if (picture.image.bits() == 8 && picture.white != 255)
    stretch<std::uint8_t>(picture.image, picture.white);
  if (picture.image.bits() == 16 && picture.white != 65535)
    stretch<std::uint16_t>(picture.image, picture.white);
  return std::move(picture.image);
}

void write_image(const fs::path& path, const ImageView& image) {
  constexpr std::array<std::string_view, 10> known = {".png", ".jpg",  ".jpeg", ".webp", ".bmp",
                                                      ".tif", ".tiff", ".ppm",  ".pgm",  ".pnm"};
  const std::string extension = lower_extension(path);
  check(std::find(known.begin(), known.end(), extension) != known.end(), ErrorKind::kUsage,
        "{}: no image format is known by the extension '{}'. Use .png, .jpg, .webp, .bmp, .tiff or "
        ".ppm.",
        path.string(), extension);
  check(!image.empty() && (image.bits == 8 || image.bits == 16) &&
            (image.channels == 1 || image.channels == 3 || image.channels == 4),
        ErrorKind::kUsage, "{}: only images of 1, 3 or 4 channels and 8 or 16 bits can be written.",
        path.string());
  const bool wide = extension == ".png" || extension.starts_with(".tif") ||
                    extension.starts_with(".p");  // .ppm, .pgm, .pnm
  check(image.bits == 8 || wide, ErrorKind::kUsage,
        "{}: '{}' holds 8 bits per channel, the image has 16. Write .png or .tiff.", path.string(),
        extension);
  check(image.channels == 1 || extension != ".pgm", ErrorKind::kUsage,
        "{}: '.pgm' holds grey images, this one has {} channels. Write .ppm or .png.",
        path.string(), image.channels);
  encode_picture(path, image);
}

}  // namespace nmrf
