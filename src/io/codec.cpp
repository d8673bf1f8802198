#include "io/codec.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <limits>
#include <new>
#include <optional>

#include "core/check.h"
#include "core/cores.h"
#include "core/file.h"
#include "io/formats.h"
#include "io/picture_check.h"

namespace nmrf {
namespace fs = std::filesystem;

namespace formats {
namespace {

std::uint64_t megabytes(std::uint64_t bytes) { return (bytes + 999'999) / 1'000'000; }

}  // namespace

void check_size(const std::string& name, PictureKind kind, std::uint64_t width,
                std::uint64_t height, std::uint64_t pixel_bytes, std::uint64_t workspace) {
  constexpr std::uint64_t kMost = std::numeric_limits<int>::max();
  check(width <= kMost && height <= kMost && width * height <= kMaxPixels, ErrorKind::kDevice,
        "{}: the {} has {}x{} pixels; at most {} megapixels are read. Make it smaller, or cut it "
        "into parts.",
        name, picture_kind_name(kind), width, height, kMaxPixels / 1'000'000);
  const std::uint64_t need = width * height * pixel_bytes + workspace;
  constexpr std::uint64_t kSmall = 64'000'000;  // not worth a look at the machine
  if (need <= kSmall) return;
  const auto have = free_memory();
  check(!have || need <= *have, ErrorKind::kDevice,
        "{}: the {} of {}x{} pixels needs {} MB of memory, and {} MB are free. Make it smaller, or "
        "close other programs.",
        name, picture_kind_name(kind), width, height, megabytes(need), megabytes(have.value_or(0)));
}

Image make_image(const std::string& name, PictureKind kind, std::uint64_t width,
                 std::uint64_t height, int channels, int bits, std::uint64_t workspace) {
  check_size(name, kind, width, height, static_cast<std::uint64_t>(channels * bits / 8), workspace);
  return Image(static_cast<int>(width), static_cast<int>(height), channels, bits);
}

void cannot_decode(const std::string& name, PictureKind kind, std::string_view reason) {
  fail(ErrorKind::kInput,
       "{}: the {} cannot be decoded: {}. Open it in a viewer, or save it again as PNG.", name,
       picture_kind_name(kind), reason);
}

void cannot_encode(const std::string& name, const ImageView& image, std::string_view reason) {
  fail(ErrorKind::kFailure, "{}: the image of {}x{} pixels cannot be encoded: {}.", name,
       image.width, image.height, reason);
}

RowReader::RowReader(const ImageView& image, int channels, ChannelOrder order)
    : image_(image),
      channels_(channels),
      order_(order),
      buffer_(static_cast<std::size_t>(image.width) * static_cast<std::size_t>(channels) *
              static_cast<std::size_t>(image.bits / 8)) {}

template <class T>
void RowReader::convert(const T* from, T* to) const {
  const bool colour = image_.channels >= 3, swap = image_.order != order_;
  for (int x = 0; x < image_.width; ++x, from += image_.channels, to += channels_)
    for (int c = 0; c < channels_; ++c)
      if (c == 3)
        to[c] = image_.channels == 4 ? from[3] : std::numeric_limits<T>::max();
      else
        to[c] = from[!colour ? 0 : swap ? 2 - c : c];
}

const std::uint8_t* RowReader::row(int y) {
  const std::uint8_t* from = image_.row(y);
  if (image_.channels == channels_ && (channels_ < 3 || image_.order == order_)) return from;
  if (image_.bits == 8)
    convert(from, buffer_.data());
  else
    convert(reinterpret_cast<const std::uint16_t*>(from),
            reinterpret_cast<std::uint16_t*>(buffer_.data()));
  return buffer_.data();
}

}  // namespace formats

std::string lower_extension(const fs::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension;
}

Picture decode_picture(const fs::path& path) {
  return decode_picture(read_file(path, ErrorKind::kInput, kMaxPictureBytes), path.string());
}

Picture decode_picture(std::string_view content, const std::string& name) {
  const PictureKind kind = check_picture(content, name);
  try {
    switch (kind) {
      case PictureKind::kPng:
        return formats::decode_png(content, name);
      case PictureKind::kJpeg:
        return formats::decode_jpeg(content, name);
      case PictureKind::kTiff:
        return formats::decode_tiff(content, name);
      case PictureKind::kWebp:
        return formats::decode_webp(content, name);
      case PictureKind::kNetpbm:
        return formats::decode_netpbm(content, name);
      case PictureKind::kBmp:
        return formats::decode_bmp(content, name);
    }
  } catch (const std::bad_alloc&) {
    fail(ErrorKind::kDevice, "{}: there is not enough memory for the {}. Make it smaller.", name,
         picture_kind_name(kind));
  }
  fail(ErrorKind::kFailure, "{}: no decoder", name);
}

void encode_picture(const fs::path& path, const ImageView& image) {
  const std::string name = path.string(), extension = lower_extension(path);
  std::string bytes;
  if (extension == ".png")
    bytes = formats::encode_png(image, name);
  else if (extension == ".jpg" || extension == ".jpeg")
    bytes = formats::encode_jpeg(image, name);
  else if (extension == ".tif" || extension == ".tiff")
    bytes = formats::encode_tiff(image, name);
  else if (extension == ".webp")
    bytes = formats::encode_webp(image, name);
  else if (extension == ".bmp")
    bytes = formats::encode_bmp(image, name);
  else
    bytes = formats::encode_netpbm(
        image, extension == ".ppm" || (extension == ".pnm" && image.channels > 1) ? 3 : 1);
  write_file(path, bytes);
}

void write_float_tiff(const fs::path& path, const FloatMap& map) {
  write_file(path, formats::encode_tiff(map, path.string()));
}

}  // namespace nmrf
