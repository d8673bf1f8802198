// Looks at the structure of an image file before a decoder sees it.
//
// Decoders fill up what a truncated file lacks, or allocate what a forged header asks for. These
// checks are made on the bytes alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace nmrf {

// Larger images and files are not read.
inline constexpr std::uint64_t kMaxPixels = 512'000'000;
inline constexpr std::uint64_t kMaxPictureBytes = std::uint64_t{1} << 31;

// The bytes of pixels that one byte of a TIFF file can stand for at most: LZW's bound.
inline constexpr std::uint64_t kMaxPackingTiff = 1365;

enum class PictureKind { kPng, kJpeg, kTiff, kNetpbm, kWebp, kBmp };

const char* picture_kind_name(PictureKind kind);

// Finds the kind by its signature and checks that the file is complete and its size plausible.
// `name` stands for the file in messages. Throws Error(kInput).
PictureKind check_picture(std::string_view content, const std::string& name);

// The first byte behind the end marker of a JPEG file. Throws Error(kInput) when there is none.
std::size_t jpeg_end(std::string_view content, const std::string& name);

// WebP has no bound of its own: a few bytes may stand for any size of one colour. Beyond 8
// megapixels a file must have a byte for every 4096 of them. Throws Error(kInput).
void check_webp_plausible(const std::string& name, std::uint64_t width, std::uint64_t height,
                          std::uint64_t file_bytes);

// What a PPM, PGM or PBM file says of itself.
struct NetpbmHeader {
  bool text = false;    // numbers as text
  bool bitmap = false;  // one bit per pixel, 1 is black
  int channels = 1;
  std::uint64_t width = 0, height = 0;
  std::uint64_t white = 1;  // the largest value
  std::size_t data = 0;     // byte offset of the pixels
};
NetpbmHeader netpbm_header(std::string_view data, const std::string& name);

// A number after white space and comments, of at most ten digits; moves `at` behind it.
std::optional<std::uint64_t> netpbm_number(std::string_view data, std::size_t& at);

}  // namespace nmrf
