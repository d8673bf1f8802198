// Pixels of an image at places between its own.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nmrf::kernels {

// 8-bit RGB, interleaved; stride in bytes.
struct RemapSource {
  const std::uint8_t* data = nullptr;
  std::ptrdiff_t stride = 0;
  int width = 0, height = 0;
};

enum class RemapBorder {
  kReplicate,  // the nearest pixel of the border
  kBlack,      // black, from half a pixel outside the outermost centres on
};

// Pixel i of the result is the image at (x[i], y[i]), pixel centres at whole numbers: bicubic, a =
// -0.75 (as cv::INTER_CUBIC), rounded to the nearest grey level. Places must be finite.
void remap(const RemapSource& image, const float* x, const float* y, int count, RemapBorder border,
           std::uint8_t* result);

}  // namespace nmrf::kernels
