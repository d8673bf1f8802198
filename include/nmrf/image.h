// Images as the library takes them: a view of pixels that belong to the caller, or an image that
// owns its pixels. Files are read and written by nmrf/files.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nmrf/export.h"

namespace nmrf {

enum class ChannelOrder { kRgb, kBgr };

// Pixels that belong to somebody else; nothing is copied.
struct ImageView {
  const void* data = nullptr;
  int width = 0;   // pixels
  int height = 0;  // pixels
  // Bytes from one row to the next, negative for images stored bottom up; 0: rows follow each other
  // without a gap.
  std::ptrdiff_t stride = 0;
  int channels = 3;  // 1 grey, 2 grey and alpha, 3 colour, 4 colour and alpha; alpha is ignored
  int bits = 8;      // per channel: 8, or 16 in the machine's byte order
  ChannelOrder order = ChannelOrder::kRgb;

  bool empty() const { return data == nullptr || width <= 0 || height <= 0; }
  std::size_t row_bytes() const {
    return static_cast<std::size_t>(width) * static_cast<std::size_t>(channels) *
           static_cast<std::size_t>(bits / 8);
  }
  const std::uint8_t* row(int y) const {
    const auto step = stride != 0 ? stride : static_cast<std::ptrdiff_t>(row_bytes());
    return static_cast<const std::uint8_t*>(data) + y * step;
  }
};

// An image that owns its pixels; rows follow each other without a gap.
class Image {
 public:
  Image() = default;
  Image(int width, int height, int channels = 3, int bits = 8,
        ChannelOrder order = ChannelOrder::kRgb)
      : channels_(channels), bits_(bits), order_(order) {
    resize(width, height);
  }

  int width() const { return width_; }
  int height() const { return height_; }
  int channels() const { return channels_; }
  int bits() const { return bits_; }
  ChannelOrder order() const { return order_; }
  bool empty() const { return bytes_.empty(); }
  std::size_t row_bytes() const { return view().row_bytes(); }

  // Keeps the memory where it suffices; the contents are unspecified afterwards.
  void resize(int width, int height) {
    width_ = width;
    height_ = height;
    bytes_.resize(row_bytes() * static_cast<std::size_t>(height));
  }

  std::uint8_t* data() { return bytes_.data(); }
  const std::uint8_t* data() const { return bytes_.data(); }
  std::uint8_t* row(int y) { return bytes_.data() + row_bytes() * static_cast<std::size_t>(y); }
  const std::uint8_t* row(int y) const {
    return bytes_.data() + row_bytes() * static_cast<std::size_t>(y);
  }

  ImageView view() const { return {bytes_.data(), width_, height_, 0, channels_, bits_, order_}; }
  operator ImageView() const { return view(); }

 private:
  int width_ = 0, height_ = 0, channels_ = 3, bits_ = 8;
  ChannelOrder order_ = ChannelOrder::kRgb;
  std::vector<std::uint8_t> bytes_;
};

// Any image as 8-bit RGB, three channels: grey is repeated, alpha dropped, 16-bit values are
// divided by 257 (65535 becomes 255). `name` stands for the image in messages. Throws Error(kInput)
// for an empty image, or channels and bits other than those of ImageView.
NMRF_API Image to_rgb8(const ImageView& image, const std::string& name = "the image");
// The same into an image that is reused.
NMRF_API void to_rgb8(const ImageView& image, Image& result, const std::string& name = "the image");

}  // namespace nmrf
