#include "nmrf/image.h"

#include "core/check.h"

namespace nmrf {
namespace {

template <class T>
void convert_row(const std::uint8_t* bytes, const ImageView& image, std::uint8_t* to) {
  const auto* from = reinterpret_cast<const T*>(bytes);
  auto narrow = [](T value) {
    if constexpr (sizeof(T) == 1)
      return value;
    else  // 65535 / 257 = 255: the whole range of 16 bits becomes the whole range of 8
      return static_cast<std::uint8_t>((value + 128) / 257);
  };
  const bool colour = image.channels >= 3;
  const int red = colour && image.order == ChannelOrder::kBgr ? 2 : 0, green = colour ? 1 : 0,
            blue = colour ? 2 - red : 0;
  for (int x = 0; x < image.width; ++x, from += image.channels, to += 3) {
    to[0] = narrow(from[red]);
    to[1] = narrow(from[green]);
    to[2] = narrow(from[blue]);
  }
}

}  // namespace

void to_rgb8(const ImageView& image, Image& result, const std::string& name) {
  check(!image.empty(), ErrorKind::kInput, "{}: the image is empty.", name);
  check(image.bits == 8 || image.bits == 16, ErrorKind::kInput,
        "{}: has {} bits per channel; expected 8 or 16.", name, image.bits);
  check(image.channels >= 1 && image.channels <= 4, ErrorKind::kInput,
        "{}: has {} channels; expected 1 (grey), 3 (colour) or 4 (with alpha).", name,
        image.channels);
  if (result.channels() != 3 || result.bits() != 8 || result.order() != ChannelOrder::kRgb)
    result = Image();
  result.resize(image.width, image.height);
  for (int y = 0; y < image.height; ++y) {
    if (image.bits == 8)
      convert_row<std::uint8_t>(image.row(y), image, result.row(y));
    else
      convert_row<std::uint16_t>(image.row(y), image, result.row(y));
  }
}

Image to_rgb8(const ImageView& image, const std::string& name) {
  Image result;
  to_rgb8(image, result, name);
  return result;
}

}  // namespace nmrf
