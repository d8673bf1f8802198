// Input images: a view of the caller's pixels, or an image that owns its pixels. nmrf/files.h reads
// and writes files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nmrf/export.h"

namespace nmrf {

enum class ChannelOrder { kRgb, kBgr };  // order of colour channels in memory

// A view of pixels owned by the caller; nothing is copied.
struct ImageView {
  const void* data = nullptr;
  int width = 0;   // pixels
  int height = 0;  // pixels
  // Bytes from one row to the next, negative for images stored bottom up; 0: rows are contiguous,
  // without padding.
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

// An image that owns its pixels; rows are contiguous.
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

  // Reuses memory where possible; the contents are unspecified afterwards.
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

// Converts an image to 8-bit RGB: grey is replicated, alpha is dropped, 16-bit values are
// divided by 257 (65535 becomes 255). `name` is used in error messages. Throws Error(kInput) for an
// empty image, or channels and bits other than those of ImageView.
NMRF_API Image to_rgb8(const ImageView& image, const std::string& name = "the image");
// Same, reusing an image.
NMRF_API void to_rgb8(const ImageView& image, Image& result, const std::string& name = "the image");

}  // namespace nmrf
