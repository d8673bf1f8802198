// The distribution of a pixel's error from what is known of the pixel: a small perceptron.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace nmrf::kernels {

// ln(1 + feature), a hidden layer with rectifiers, and a softmax over ranges of the error.
struct ErrorMlp {
  static constexpr std::size_t kFeatures = 16, kHidden = 16, kRanges = 8;
  // Upper ends of all ranges but the last, px. The first kBelow1 end at 1 px, the first kBelow3
  // at 3.
  static constexpr std::array<float, kRanges - 1> kEnds{0.25f, 0.5f, 1, 2, 3, 6, 12};
  static constexpr std::size_t kBelow1 = 3, kBelow3 = 5;

  std::array<std::array<float, kFeatures>, kHidden> weight1{};
  std::array<float, kHidden> bias1{};
  std::array<std::array<float, kHidden>, kRanges> weight2{};
  std::array<float, kRanges> bias2{};
  std::array<float, kRanges> mean{};  // of the errors in each range, px
};

// Pixels per row of working memory: rows are read and written in whole vectors.
constexpr std::size_t error_row(std::size_t width) { return (width + 15) / 16 * 16; }

// One row: features [kFeatures, error_row(width)], each 0 or more. below1, below3: probabilities;
// expected: px; error_row(width) values each.
void error_mlp(const ErrorMlp& mlp, const float* features, std::size_t width, float* below1,
               float* below3, float* expected);

}  // namespace nmrf::kernels
