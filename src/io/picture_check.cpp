#include "io/picture_check.h"

#include <zlib.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <vector>

#include "core/check.h"

namespace nmrf {
namespace {

constexpr std::uint64_t kAlwaysPlausible = 8 << 20;  // pixels: a blank image of 4K

std::uint8_t byte_at(std::string_view data, std::size_t at) {
  return static_cast<std::uint8_t>(data[at]);
}

std::uint32_t big16(std::string_view data, std::size_t at) {
  return static_cast<std::uint32_t>(byte_at(data, at)) << 8 | byte_at(data, at + 1);
}

std::uint32_t big32(std::string_view data, std::size_t at) {
  return big16(data, at) << 16 | big16(data, at + 2);
}

std::uint32_t little32(std::string_view data, std::size_t at) {
  return static_cast<std::uint32_t>(byte_at(data, at)) | byte_at(data, at + 1) << 8 |
         byte_at(data, at + 2) << 16 | static_cast<std::uint32_t>(byte_at(data, at + 3)) << 24;
}

[[noreturn]] void truncated(const std::string& name, PictureKind kind, std::string_view detail) {
  fail(ErrorKind::kInput, "{}: the {} is truncated: {}. Copy or download the file again.", name,
       picture_kind_name(kind), detail);
}

std::uint32_t crc_of(std::string_view data) {
  return static_cast<std::uint32_t>(
      ::crc32_z(0, reinterpret_cast<const unsigned char*>(data.data()), data.size()));
}

void check_plausible(const std::string& name, PictureKind kind, std::uint64_t width,
                     std::uint64_t height, std::uint64_t most_pixels) {
  check(width > 0 && height > 0, ErrorKind::kInput, "{}: the {} has no pixels ({}x{}).", name,
        picture_kind_name(kind), width, height);
  check(width <= most_pixels && height <= most_pixels / width, ErrorKind::kInput,
        "{}: the {} header says {}x{} pixels, more than a file of this length can hold. The file "
        "is truncated or damaged.",
        name, picture_kind_name(kind), width, height);
}

// Walks the chunks: each must be whole with the right checksum, and IEND must come.
void check_png(std::string_view data, const std::string& name) {
  constexpr auto kind = PictureKind::kPng;
  std::size_t at = 8;
  bool first = true;
  while (true) {
    if (data.size() - at < 12) truncated(name, kind, "the file ends before its end marker (IEND)");
    const std::uint64_t length = big32(data, at);
    if (length > data.size() - at - 12)
      truncated(name, kind,
                fmt::format("the file ends after {} bytes inside a block of data", data.size()));
    const std::string_view type = data.substr(at + 4, 4);
    check(crc_of(data.substr(at + 4, length + 4)) == big32(data, at + 8 + length),
          ErrorKind::kInput,
          "{}: the PNG image is damaged: wrong checksum in the block at byte {}. Copy or download "
          "the file again.",
          name, at);
    if (first) {
      check(type == "IHDR" && length == 13, ErrorKind::kInput,
            "{}: the PNG image is damaged: it does not begin with its header (IHDR).", name);
      // Deflate shrinks at most 1032 times.
      const int variety = byte_at(data, at + 17);
      const int channels = variety == 2 ? 3 : variety == 4 ? 2 : variety == 6 ? 4 : 1;
      const std::uint64_t pixel_bits = std::max(1, byte_at(data, at + 16) * channels);
      check_plausible(name, kind, big32(data, at + 8), big32(data, at + 12),
                      std::uint64_t{data.size()} * 1032 * 8 / pixel_bits);
      first = false;
    }
    if (type == "IEND") return;
    at += 12 + length;
  }
}

// Walks the segments, steps over the coded data of each scan, and wants the end marker. Trailing
// bytes after it are common (cameras append previews) and harmless. Returns where they begin.
std::size_t check_jpeg(std::string_view data, const std::string& name) {
  constexpr auto kind = PictureKind::kJpeg;
  std::size_t at = 2;
  bool in_scan = false;
  while (true) {
    if (in_scan) {
      at = data.find('\xFF', at);
      if (at == std::string_view::npos) at = data.size();
    }
    if (data.size() - at < 2) truncated(name, kind, "the file ends before its end marker (EOI)");
    const std::uint8_t lead = byte_at(data, at);
    const std::uint8_t marker = byte_at(data, at + 1);
    if (lead != 0xFF || marker == 0xFF) {  // fill bytes, or garbage that decoders step over too
      ++at;
      continue;
    }
    const bool stuffing = marker == 0x00 || marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8);
    if (stuffing) {  // an escaped FF, a restart marker: no length follows
      at += 2;
      continue;
    }
    if (marker == 0xD9) return at + 2;
    if (data.size() - at < 4) truncated(name, kind, "the file ends inside a header");
    const std::size_t length = big16(data, at + 2);
    check(length >= 2, ErrorKind::kInput, "{}: the JPEG image is damaged at byte {}.", name, at);
    if (length > data.size() - at - 2) truncated(name, kind, "the file ends inside a header");
    // Baseline to progressive, by Huffman's or the arithmetic code.
    const bool frame = (marker >= 0xC0 && marker <= 0xC2) || marker == 0xC9 || marker == 0xCA;
    if (frame && length >= 8) {
      // Every block of 8x8 pixels costs at least one bit.
      check_plausible(name, kind, big16(data, at + 7), big16(data, at + 5),
                      std::uint64_t{data.size()} * 8 * 64);
    }
    in_scan = marker == 0xDA;
    at += 2 + length;
  }
}

// The first directory of a TIFF file. Every access is checked against the length of the file.
class TiffDirectory {
 public:
  TiffDirectory(std::string_view data, const std::string& name)
      : data_(data), name_(name), big_(data[0] == 'M') {
    if (data.size() < 8) truncated(name, PictureKind::kTiff, "the file ends inside its header");
    check(word(2) == 42, ErrorKind::kInput,
          "{}: is a BigTIFF file, which is not read. Save it as plain TIFF or PNG.", name);
    start_ = number(4);
    count_ = word(start_);
    if (start_ + 2 + count_ * 12 > data.size()) cut_off();
  }

  // The values of a tag, up to `most` of them; none when it is absent.
  std::vector<std::uint64_t> values(std::uint32_t tag, std::uint64_t most) const {
    std::vector<std::uint64_t> all;
    for (std::uint64_t i = 0; i < count_; ++i) {
      const std::uint64_t entry = start_ + 2 + i * 12;
      if (word(entry) != tag) continue;
      const bool narrow = word(entry + 2) == 3;
      const std::uint64_t count = number(entry + 4);
      const std::uint64_t bytes = count * (narrow ? 2 : 4);
      const std::uint64_t at = bytes <= 4 ? entry + 8 : number(entry + 8);
      if (at + bytes > data_.size()) cut_off();
      for (std::uint64_t k = 0; k < std::min(count, most); ++k)
        all.push_back(narrow ? word(at + 2 * k) : number(at + 4 * k));
      return all;
    }
    return all;
  }

  std::uint64_t value(std::uint32_t tag, std::uint64_t otherwise) const {
    const auto all = values(tag, 1);
    return all.empty() ? otherwise : all[0];
  }

  [[noreturn]] void cut_off() const {
    truncated(name_, PictureKind::kTiff, "its directory points beyond the end of the file");
  }

 private:
  std::uint64_t word(std::uint64_t at) const {
    if (at + 2 > data_.size()) cut_off();
    return big_ ? big16(data_, at) : byte_at(data_, at) | byte_at(data_, at + 1) << 8;
  }
  std::uint64_t number(std::uint64_t at) const {
    if (at + 4 > data_.size()) cut_off();
    return big_ ? big32(data_, at) : little32(data_, at);
  }

  std::string_view data_;
  const std::string& name_;
  bool big_;
  std::uint64_t start_ = 0;
  std::uint64_t count_ = 0;
};

void check_tiff(std::string_view data, const std::string& name) {
  constexpr std::uint32_t kWidth = 256, kHeight = 257, kBits = 258, kChannels = 277;
  constexpr std::uint32_t kPacking = 259, kNone = 1, kLzw = 5, kDeflate = 8, kPackBits = 32773;
  constexpr std::uint32_t kPieces[2][2] = {{273, 279}, {324, 325}};  // strips, tiles: place, length
  const TiffDirectory directory(data, name);
  const std::uint64_t pixel_bits = std::clamp<std::uint64_t>(directory.value(kBits, 1), 1, 64) *
                                   std::clamp<std::uint64_t>(directory.value(kChannels, 1), 1, 64);
  // LZW shrinks at most 1365 times, most others less; a few (fax, Zstandard) have no such bound.
  const std::uint64_t packing = directory.value(kPacking, kNone);
  const bool bounded =
      packing == kNone || packing == kLzw || packing == kDeflate || packing == kPackBits;
  const std::uint64_t most = std::uint64_t{data.size()} * kMaxPackingTiff * 8 / pixel_bits;
  check_plausible(name, PictureKind::kTiff, directory.value(kWidth, 0), directory.value(kHeight, 0),
                  bounded ? most : std::max(most, kAlwaysPlausible));
  for (const auto& piece : kPieces) {
    const auto places = directory.values(piece[0], data.size());
    const auto lengths = directory.values(piece[1], data.size());
    for (std::size_t i = 0; i < std::min(places.size(), lengths.size()); ++i)
      if (places[i] + lengths[i] > data.size()) directory.cut_off();
  }
}

void check_webp(std::string_view data, const std::string& name) {
  if (data.size() < 20 || std::uint64_t{little32(data, 4)} + 8 > data.size())
    truncated(name, PictureKind::kWebp,
              fmt::format("its header promises {} bytes, the file has {}",
                          std::uint64_t{little32(data, 4)} + 8, data.size()));
}

void check_netpbm(std::string_view data, const std::string& name) {
  constexpr auto kind = PictureKind::kNetpbm;
  const NetpbmHeader h = netpbm_header(data, name);
  const auto channels = static_cast<std::uint64_t>(h.channels);
  // Text takes at least a digit per value, and a blank unless it is a bitmap.
  check_plausible(name, kind, h.width, h.height,
                  h.text ? data.size() / channels : std::uint64_t{data.size()} * 8);
  if (h.text) return;  // the decoder counts them
  const std::uint64_t row =
      h.bitmap ? (h.width + 7) / 8 : h.width * channels * (h.white > 255 ? 2 : 1);
  const std::uint64_t have = data.size() - std::min(h.data, data.size());
  if (row * h.height > have)
    truncated(name, kind,
              fmt::format("{}x{} pixels need {} bytes, the file has {}", h.width, h.height,
                          row * h.height, have));
}

void check_bmp(std::string_view data, const std::string& name) {
  constexpr auto kind = PictureKind::kBmp;
  if (data.size() < 30) truncated(name, kind, "the file ends inside its header");
  // The header's own idea of the file size is often wrong; the pixels are what counts.
  const std::uint64_t offset = little32(data, 10);
  const std::uint32_t header = little32(data, 14);
  if (header == 12) {  // of OS/2; its pixels are counted by the decoder
    check_plausible(name, kind, little32(data, 18) & 0xFFFF, little32(data, 18) >> 16,
                    std::uint64_t{data.size()} * 8);
    return;
  }
  check(header >= 40 && header < data.size(), ErrorKind::kInput,
        "{}: the BMP image has no proper header.", name);
  const auto width = static_cast<std::int32_t>(little32(data, 18));
  auto height = std::int64_t{static_cast<std::int32_t>(little32(data, 22))};
  if (height < 0) height = -height;  // rows from the top
  check(width > 0 && height > 0, ErrorKind::kInput, "{}: the BMP image has no pixels.", name);
  const std::uint32_t bits = little32(data, 26) >> 16;
  const std::uint32_t compression = data.size() >= 34 ? little32(data, 30) : 0;
  check(compression <= 3, ErrorKind::kInput,
        "{}: the BMP image is damaged, or packed in a way that is not read. Save it as PNG.", name);
  if (compression == 1 || compression == 2) {  // run lengths: at most 255 pixels in two bytes
    check_plausible(name, kind, static_cast<std::uint64_t>(width),
                    static_cast<std::uint64_t>(height), std::uint64_t{data.size()} * 128);
    return;
  }
  const std::uint64_t row = (static_cast<std::uint64_t>(width) * bits + 31) / 32 * 4;
  const std::uint64_t need = row * static_cast<std::uint64_t>(height);
  if (offset > data.size() || need > data.size() - offset)
    truncated(name, kind, fmt::format("{}x{} pixels need {} bytes", width, height, need));
}

[[noreturn]] void not_a_picture(std::string_view data, const std::string& name) {
  constexpr std::string_view advice = "Expected PNG, JPEG, TIFF, PPM/PGM, WebP or BMP.";
  if (data.empty()) fail(ErrorKind::kInput, "{}: the file is empty. {}", name, advice);
  if (data.substr(0, 30).starts_with("version https://git-lfs"))
    fail(ErrorKind::kInput,
         "{}: is a Git LFS pointer, not the image itself. Run 'git lfs pull' where it came from.",
         name);
  bool text = true;
  for (char c : data.substr(0, 64)) {
    const auto byte = static_cast<unsigned char>(c);
    text = text && (byte >= 32 || std::isspace(byte));
  }
  if (text)
    fail(ErrorKind::kInput, "{}: is not an image but looks like text, whatever its name says. {}",
         name, advice);
  fail(ErrorKind::kInput, "{}: is not an image of a known kind. {}", name, advice);
}

}  // namespace

const char* picture_kind_name(PictureKind kind) {
  switch (kind) {
    case PictureKind::kPng:
      return "PNG image";
    case PictureKind::kJpeg:
      return "JPEG image";
    case PictureKind::kTiff:
      return "TIFF image";
    case PictureKind::kNetpbm:
      return "PPM/PGM image";
    case PictureKind::kWebp:
      return "WebP image";
    case PictureKind::kBmp:
      return "BMP image";
  }
  return "image";
}

std::size_t jpeg_end(std::string_view content, const std::string& name) {
  return check_jpeg(content, name);
}

void check_webp_plausible(const std::string& name, std::uint64_t width, std::uint64_t height,
                          std::uint64_t file_bytes) {
  check_plausible(name, PictureKind::kWebp, width, height,
                  std::max(kAlwaysPlausible, file_bytes * 4096));
}

std::optional<std::uint64_t> netpbm_number(std::string_view data, std::size_t& at) {
  while (at < data.size()) {
    if (data[at] == '#')
      while (at < data.size() && data[at] != '\n') ++at;
    else if (std::isspace(byte_at(data, at)))
      ++at;
    else
      break;
  }
  std::uint64_t value = 0;
  const std::size_t start = at;
  while (at < data.size() && std::isdigit(byte_at(data, at)) && at - start < 10)
    value = value * 10 + static_cast<std::uint64_t>(data[at++] - '0');
  if (at == start) return std::nullopt;
  return value;
}

NetpbmHeader netpbm_header(std::string_view data, const std::string& name) {
  NetpbmHeader h;
  const char variety = data[1];
  h.text = variety < '4';
  h.bitmap = variety == '1' || variety == '4';
  h.channels = variety == '3' || variety == '6' ? 3 : 1;
  h.data = 2;
  const auto width = netpbm_number(data, h.data), height = netpbm_number(data, h.data);
  const auto white = h.bitmap ? std::optional<std::uint64_t>(1) : netpbm_number(data, h.data);
  check(width && height && white && *white > 0 && *white < 65536, ErrorKind::kInput,
        "{}: the PPM/PGM image has no proper header (width, height, largest value).", name);
  h.width = *width;
  h.height = *height;
  h.white = *white;
  ++h.data;  // one white byte
  return h;
}

PictureKind check_picture(std::string_view data, const std::string& name) {
  check(data.size() < kMaxPictureBytes, ErrorKind::kInput,
        "{}: is larger than 2 GiB, too large for an image.", name);
  if (data.starts_with("\x89PNG\r\n\x1a\n")) {
    check_png(data, name);
    return PictureKind::kPng;
  }
  if (data.starts_with("\xFF\xD8\xFF")) {
    check_jpeg(data, name);
    return PictureKind::kJpeg;
  }
  using namespace std::string_view_literals;
  if (data.starts_with("II*\0"sv) || data.starts_with("MM\0*"sv) || data.starts_with("II+\0"sv) ||
      data.starts_with("MM\0+"sv)) {
    check_tiff(data, name);
    return PictureKind::kTiff;
  }
  if (data.size() >= 12 && data.starts_with("RIFF") && data.substr(8, 4) == "WEBP") {
    check_webp(data, name);
    return PictureKind::kWebp;
  }
  if (data.size() >= 3 && data[0] == 'P' && data[1] >= '1' && data[1] <= '6' &&
      (std::isspace(byte_at(data, 2)) || data[2] == '#')) {
    check_netpbm(data, name);
    return PictureKind::kNetpbm;
  }
  if (data.starts_with("BM") && data.size() >= 18 && data.substr(6, 4) == "\0\0\0\0"sv) {
    check_bmp(data, name);
    return PictureKind::kBmp;
  }
  not_a_picture(data, name);
}

}  // namespace nmrf
