// PPM, PGM and PBM, as text and binary, 8 and 16 bits.
#include <algorithm>
#include <cctype>
#include <cstring>

#include "core/check.h"
#include "io/formats.h"

namespace nmrf::formats {
namespace {

constexpr auto kKind = PictureKind::kNetpbm;

[[noreturn]] void too_short(const std::string& name, const NetpbmHeader& header) {
  fail(ErrorKind::kInput,
       "{}: the PPM/PGM image is truncated: it ends before the last of {}x{} pixels. Copy or "
       "download the file again.",
       name, header.width, header.height);
}

// The numbers of a text file. Bitmaps need no blanks between their digits.
class TextReader {
 public:
  TextReader(std::string_view data, const NetpbmHeader& header, const std::string& name)
      : data_(data), at_(header.data), header_(header), name_(name) {}

  unsigned next() {
    if (header_.bitmap) {
      skip_blanks();
      if (at_ >= data_.size()) too_short(name_, header_);
      const char c = data_[at_++];
      if (c != '0' && c != '1') cannot_decode(name_, kKind, "it holds digits other than 0 and 1");
      return c == '0' ? 1u : 0u;  // 1 is black
    }
    const auto value = netpbm_number(data_, at_);
    if (!value && at_ >= data_.size()) too_short(name_, header_);
    if (!value || *value > header_.white)
      cannot_decode(name_, kKind, "it holds a value beyond the largest that its header allows");
    return static_cast<unsigned>(*value);
  }

 private:
  void skip_blanks() {
    while (at_ < data_.size() && std::isspace(static_cast<unsigned char>(data_[at_]))) ++at_;
  }

  std::string_view data_;
  std::size_t at_;
  const NetpbmHeader& header_;
  const std::string& name_;
};

}  // namespace

Picture decode_netpbm(std::string_view data, const std::string& name) {
  const NetpbmHeader header = netpbm_header(data, name);
  const bool wide = header.white > 255;
  Picture picture;
  picture.image =
      make_image(name, kKind, header.width, header.height, header.channels, wide ? 16 : 8);
  picture.white = header.bitmap ? 255 : static_cast<int>(header.white);
  Image& image = picture.image;
  const std::size_t count = static_cast<std::size_t>(image.width()) * header.channels;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(data.data()) + header.data;
  TextReader text(data, header, name);
  for (int y = 0; y < image.height(); ++y) {
    std::uint8_t* row = image.row(y);
    if (header.text) {
      for (std::size_t i = 0; i < count; ++i) {
        const unsigned value = header.bitmap ? 255 * text.next() : text.next();
        if (wide)
          reinterpret_cast<std::uint16_t*>(row)[i] = static_cast<std::uint16_t>(value);
        else
          row[i] = static_cast<std::uint8_t>(value);
      }
    } else if (header.bitmap) {
      for (std::size_t i = 0; i < count; ++i) row[i] = bytes[i / 8] >> (7 - i % 8) & 1 ? 0 : 255;
      bytes += (count + 7) / 8;
    } else if (wide) {  // the higher byte first
      for (std::size_t i = 0; i < count; ++i, bytes += 2)
        reinterpret_cast<std::uint16_t*>(row)[i] =
            static_cast<std::uint16_t>(std::min<unsigned>(bytes[0] << 8 | bytes[1], header.white));
    } else {
      const auto white = static_cast<std::uint8_t>(header.white);
      for (std::size_t i = 0; i < count; ++i) row[i] = std::min(bytes[i], white);
      bytes += count;
    }
  }
  return picture;
}

std::string encode_netpbm(const ImageView& image, int channels) {
  std::string bytes = fmt::format("P{}\n{} {}\n{}\n", channels == 1 ? 5 : 6, image.width,
                                  image.height, image.bits == 8 ? 255 : 65535);
  RowReader rows(image, channels);
  const std::size_t start = bytes.size(), row_bytes = rows.row_bytes();
  bytes.resize(start + row_bytes * static_cast<std::size_t>(image.height));
  char* to = bytes.data() + start;
  for (int y = 0; y < image.height; ++y, to += row_bytes) {
    std::memcpy(to, rows.row(y), row_bytes);
    if (image.bits == 16)
      for (std::size_t i = 0; i < row_bytes; i += 2) std::swap(to[i], to[i + 1]);
  }
  return bytes;
}

}  // namespace nmrf::formats
