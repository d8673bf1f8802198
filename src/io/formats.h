// The codecs behind codec.h, one file per format, and what they share.
//
// Every decoder takes a whole file that has passed check_picture(); `name` stands for it in
// messages. Encoders return the bytes of the file. The C libraries report errors by longjmp: the
// functions that call setjmp hold no object with a destructor.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/codec.h"
#include "io/picture_check.h"

namespace nmrf::formats {

Picture decode_png(std::string_view data, const std::string& name);
Picture decode_jpeg(std::string_view data, const std::string& name);
Picture decode_tiff(std::string_view data, const std::string& name);
Picture decode_webp(std::string_view data, const std::string& name);
Picture decode_netpbm(std::string_view data, const std::string& name);
Picture decode_bmp(std::string_view data, const std::string& name);

std::string encode_png(const ImageView& image, const std::string& name);
std::string encode_jpeg(const ImageView& image, const std::string& name, int quality = 95);
std::string encode_tiff(const ImageView& image, const std::string& name);
std::string encode_tiff(const FloatMap& map, const std::string& name);
std::string encode_webp(const ImageView& image, const std::string& name);
// `channels`: 1 for PGM, 3 for PPM.
std::string encode_netpbm(const ImageView& image, int channels);
std::string encode_bmp(const ImageView& image, const std::string& name);

// Throws Error(kDevice) for more than kMaxPixels, and when the pixels (and `workspace` bytes that
// the decoder needs beside them) do not fit into the memory that is free.
void check_size(const std::string& name, PictureKind kind, std::uint64_t width,
                std::uint64_t height, std::uint64_t pixel_bytes, std::uint64_t workspace = 0);

// An image of a file's size, after check_size().
Image make_image(const std::string& name, PictureKind kind, std::uint64_t width,
                 std::uint64_t height, int channels, int bits, std::uint64_t workspace = 0);

// Throws the Error(kInput) of a file that passed the first checks and cannot be decoded.
[[noreturn]] void cannot_decode(const std::string& name, PictureKind kind, std::string_view reason);
// Throws the Error(kFailure) of an image that a library refuses to encode.
[[noreturn]] void cannot_encode(const std::string& name, const ImageView& image,
                                std::string_view reason);

// The rows of an image with the channels and the order that a format wants: grey is repeated, alpha
// dropped or set to opaque. `channels` below 3 takes grey images only.
class RowReader {
 public:
  RowReader(const ImageView& image, int channels, ChannelOrder order = ChannelOrder::kRgb);
  // Valid until the next call. 16-bit values are in the machine's byte order.
  const std::uint8_t* row(int y);
  std::size_t row_bytes() const { return buffer_.size(); }

 private:
  template <class T>
  void convert(const T* from, T* to) const;

  const ImageView& image_;
  int channels_;
  ChannelOrder order_;
  std::vector<std::uint8_t> buffer_;
};

}  // namespace nmrf::formats
