// Resampling of images and maps: row ranges, so that a thread pool can split the work. Tables are
// rebuilt only for other sizes, and keep their memory where it suffices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace nmrf::kernels {

enum class Resampling {
  kArea,     // the mean over the area of a pixel, for reducing (as cv::INTER_AREA)
  kBicubic,  // a = -0.75, replicated border, for enlarging (as cv::INTER_CUBIC)
};

// One axis of a separable filter: result i is the sum of weights[i * taps + t] * source[first[i] +
// t]. Borders are folded into the weights: first[i] + taps never exceeds the source's size.
struct ResampleAxis {
  int taps = 0;
  std::vector<int> first;
  std::vector<float> weights;

  void prepare(Resampling method, int source, int result);
};

// 8-bit RGB, interleaved. Rounds to the nearest grey level.
class Resampler {
 public:
  // Sizes in pixels, at least 1.
  void prepare(Resampling method, int source_width, int source_height, int width, int height);

  // Working memory of one call of rows().
  std::size_t work_floats() const;

  // Rows begin to end (not included) of the result. Strides in bytes.
  void rows(const std::uint8_t* source, std::ptrdiff_t source_stride, std::uint8_t* result,
            std::ptrdiff_t stride, int begin, int end, float* work) const;

 private:
  Resampling method_ = Resampling::kArea;
  int source_width_ = 0, source_height_ = 0, width_ = 0, height_ = 0;
  float bias_ = 0;  // before rounding
  ResampleAxis columns_, rows_;
};

// Maps of floats: the nearest value (as cv::INTER_NEAREST: source index floor(x * source / result))
// times a factor. Rows follow each other without a gap.
class NearestResampler {
 public:
  void prepare(int source_width, int source_height, int width, int height);
  void rows(const float* source, float factor, float* result, int begin, int end) const;

 private:
  int source_width_ = 0, source_height_ = 0, width_ = 0, height_ = 0;
  std::vector<int> columns_;
};

// Means of 2 x 2 pixels: 8-bit RGB to float RGB 0..255, both interleaved. Rows begin to end of a
// result of `width` pixels, without a gap between its rows; what the source (its size given, stride
// in bytes) lacks at the right and the bottom repeats its last column and row.
void halve_to_float(const std::uint8_t* source, std::ptrdiff_t source_stride, int source_width,
                    int source_height, float* result, int width, int begin, int end);

}  // namespace nmrf::kernels
