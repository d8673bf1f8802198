// BMP: palettes, 16 to 32 bits, run lengths, rows from the bottom or the top.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "core/check.h"
#include "io/formats.h"

namespace nmrf::formats {
namespace {

constexpr auto kKind = PictureKind::kBmp;
constexpr std::uint32_t kRle8 = 1, kRle4 = 2, kBitFields = 3;

// Every access is checked against the length of the file.
class Bytes {
 public:
  Bytes(std::string_view data, const std::string& name) : data_(data), name_(name) {}
  std::size_t size() const { return data_.size(); }
  std::uint32_t byte(std::uint64_t at) const {
    if (at >= data_.size())
      fail(ErrorKind::kInput,
           "{}: the BMP image is truncated: the file ends after {} bytes. Copy or download the "
           "file again.",
           name_, data_.size());
    return static_cast<std::uint8_t>(data_[at]);
  }
  std::uint32_t word(std::uint64_t at) const { return byte(at) | byte(at + 1) << 8; }
  std::uint32_t number(std::uint64_t at) const { return word(at) | word(at + 2) << 16; }

 private:
  std::string_view data_;
  const std::string& name_;
};

struct Header {
  std::uint64_t pixels = 0;  // byte offset
  std::uint64_t width = 0, height = 0;
  bool top_down = false;
  std::uint32_t bits = 0, packing = 0;
  std::array<std::uint32_t, 4> masks{};                // of 16 and 32 bits: red, green, blue, alpha
  std::vector<std::array<std::uint8_t, 3>> palette{};  // RGB
};

void read_palette(const Bytes& file, std::uint64_t at, std::uint64_t count, std::uint64_t step,
                  Header& h) {
  h.palette.resize(std::size_t{1} << h.bits);  // indices beyond `count` are black
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(count, h.palette.size()); ++i, at += step)
    for (std::uint64_t c = 0; c < 3; ++c)
      h.palette[i][c] = static_cast<std::uint8_t>(file.byte(at + 2 - c));
}

Header read_header(const Bytes& file, const std::string& name) {
  Header h;
  h.pixels = file.number(10);
  const std::uint32_t size = file.number(14);
  if (size == 12) {  // of OS/2
    h.width = file.word(18);
    h.height = file.word(20);
    h.bits = file.word(24);
  } else {
    const auto height = static_cast<std::int32_t>(file.number(22));
    h.width = file.number(18);
    h.top_down = height < 0;
    h.height = static_cast<std::uint64_t>(h.top_down ? -std::int64_t{height} : height);
    h.bits = file.word(28);
    h.packing = file.number(30);
  }
  const bool runs = (h.packing == kRle8 && h.bits == 8) || (h.packing == kRle4 && h.bits == 4);
  const bool fields = h.packing == kBitFields && (h.bits == 16 || h.bits == 32);
  const bool known =
      h.bits == 1 || h.bits == 4 || h.bits == 8 || h.bits == 16 || h.bits == 24 || h.bits == 32;
  check(known && (h.packing == 0 || runs || fields) && !(runs && h.top_down), ErrorKind::kInput,
        "{}: the BMP image is damaged, or of a variety that is not read ({} bits, packing {}). "
        "Save it as PNG.",
        name, h.bits, h.packing);
  check(h.width > 0 && h.height > 0, ErrorKind::kInput, "{}: the BMP image has no pixels.", name);
  if (h.bits <= 8) {
    const std::uint64_t step = size == 12 ? 3 : 4;
    std::uint64_t count = size == 12 ? 0 : file.number(46);
    if (count == 0) count = std::uint64_t{1} << h.bits;
    read_palette(file, 14 + std::uint64_t{size}, count, step, h);
  } else if (fields) {
    const bool alpha = size >= 56;
    for (std::uint64_t c = 0; c < (alpha ? 4u : 3u); ++c) h.masks[c] = file.number(54 + 4 * c);
  } else if (h.bits == 16) {
    h.masks = {0x7C00, 0x03E0, 0x001F, 0};
  } else {
    h.masks = {0xFF0000, 0x00FF00, 0x0000FF, 0};
  }
  return h;
}

// A field of `pixel` as 8 bits: 31 of 5 bits becomes 255.
std::uint8_t field(std::uint32_t pixel, std::uint32_t mask) {
  if (mask == 0) return 0;
  const int shift = std::countr_zero(mask);
  const std::uint64_t top = mask >> shift;
  return static_cast<std::uint8_t>((std::uint64_t{(pixel & mask) >> shift} * 255 + top / 2) / top);
}

// Palette indices of a picture packed as runs, bottom row first, `width` bytes per row.
std::vector<std::uint8_t> unpack_runs(const Bytes& file, const Header& h) {
  std::vector<std::uint8_t> indices(h.width * h.height);
  std::uint64_t at = h.pixels, x = 0, y = 0;
  const bool nibbles = h.packing == kRle4;
  auto put = [&](std::uint32_t value) {
    if (x < h.width && y < h.height) indices[y * h.width + x] = static_cast<std::uint8_t>(value);
    ++x;
  };
  while (true) {
    const std::uint32_t count = file.byte(at), code = file.byte(at + 1);
    at += 2;
    if (count > 0) {
      for (std::uint32_t i = 0; i < count; ++i)
        put(!nibbles ? code : i % 2 == 0 ? code >> 4 : code & 15);
    } else if (code == 0) {  // end of the row
      x = 0;
      ++y;
    } else if (code == 1) {  // end of the picture
      return indices;
    } else if (code == 2) {  // a step to the right and up
      x += file.byte(at);
      y += file.byte(at + 1);
      at += 2;
    } else {  // as they are, padded to an even number of bytes
      for (std::uint32_t i = 0; i < code; ++i) {
        const std::uint32_t byte = file.byte(at + (nibbles ? i / 2 : i));
        put(!nibbles ? byte : i % 2 == 0 ? byte >> 4 : byte & 15);
      }
      const std::uint64_t bytes = nibbles ? (code + 1) / 2 : code;
      at += bytes + bytes % 2;
    }
  }
}

void put_little(std::string& to, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to += static_cast<char>(value >> (8 * i) & 0xFF);
}

}  // namespace

Picture decode_bmp(std::string_view data, const std::string& name) {
  const Bytes file(data, name);
  const Header h = read_header(file, name);
  const bool grey =
      !h.palette.empty() && std::all_of(h.palette.begin(), h.palette.end(),
                                        [](const auto& c) { return c[0] == c[1] && c[1] == c[2]; });
  const int channels = grey ? 1 : h.masks[3] != 0 ? 4 : 3;
  const std::uint64_t row_bytes = (h.width * h.bits + 31) / 32 * 4;
  const bool runs = h.packing == kRle8 || h.packing == kRle4;
  Picture picture;
  picture.image =
      make_image(name, kKind, h.width, h.height, channels, 8, runs ? h.width * h.height : 0);
  Image& image = picture.image;
  const auto indices = runs ? unpack_runs(file, h) : std::vector<std::uint8_t>();
  if (!runs) file.byte(h.pixels + row_bytes * h.height - 1);  // throws when it is not there
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(data.data());
  for (std::uint64_t y = 0; y < h.height; ++y) {
    std::uint8_t* to = image.row(static_cast<int>(h.top_down ? y : h.height - 1 - y));
    const std::uint8_t* from =
        runs ? indices.data() + y * h.width : bytes + h.pixels + row_bytes * y;
    for (std::uint64_t x = 0; x < h.width; ++x, to += channels) {
      if (!h.palette.empty()) {
        const std::uint64_t bit = x * h.bits;
        const unsigned index =
            runs ? from[x] : from[bit / 8] >> (8 - h.bits - bit % 8) & ((1u << h.bits) - 1);
        std::copy_n(h.palette[index].begin(), channels, to);
        continue;
      }
      std::uint32_t pixel = 0;
      for (std::uint32_t i = 0; i < h.bits / 8; ++i)
        pixel |= std::uint32_t{from[x * (h.bits / 8) + i]} << (8 * i);
      for (int c = 0; c < channels; ++c) to[c] = field(pixel, h.masks[static_cast<std::size_t>(c)]);
    }
  }
  return picture;
}

std::string encode_bmp(const ImageView& image, const std::string& name) {
  const int channels = image.channels;
  const std::uint64_t width = static_cast<std::uint64_t>(image.width),
                      height = static_cast<std::uint64_t>(image.height);
  const std::uint64_t row_bytes = (width * static_cast<std::uint64_t>(channels) + 3) / 4 * 4;
  const std::uint64_t header = channels == 4 ? 108 : 40, palette = channels == 1 ? 1024 : 0;
  const std::uint64_t start = 14 + header + palette, size = start + row_bytes * height;
  if (size > 0xFFFFFFFFu) cannot_encode(name, image, "a BMP file holds at most 4 GB");
  std::string bytes = "BM";
  bytes.reserve(size);
  put_little(bytes, size, 4);
  put_little(bytes, 0, 4);
  put_little(bytes, start, 4);
  put_little(bytes, header, 4);
  put_little(bytes, width, 4);
  put_little(bytes, height, 4);
  put_little(bytes, 1, 2);
  put_little(bytes, static_cast<std::uint64_t>(8 * channels), 2);
  put_little(bytes, channels == 4 ? kBitFields : 0, 4);
  put_little(bytes, row_bytes * height, 4);
  for (int i = 0; i < 4; ++i) put_little(bytes, i < 2 ? 2835 : 0, 4);  // 72 dots per inch
  if (channels == 4) {
    for (std::uint64_t mask : {0xFF0000u, 0x00FF00u, 0x0000FFu, 0xFF000000u})
      put_little(bytes, mask, 4);
    put_little(bytes, 0x73524742, 4);  // sRGB
    bytes.append(48, '\0');
  }
  for (std::uint64_t i = 0; i < palette / 4; ++i) put_little(bytes, i * 0x010101, 4);
  RowReader rows(image, channels, ChannelOrder::kBgr);
  for (int y = image.height - 1; y >= 0; --y) {
    bytes.append(reinterpret_cast<const char*>(rows.row(y)), rows.row_bytes());
    bytes.append(row_bytes - rows.row_bytes(), '\0');
  }
  return bytes;
}

}  // namespace nmrf::formats
