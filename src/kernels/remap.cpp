#include "kernels/remap.h"

#include <algorithm>
#include <cmath>

namespace nmrf::kernels {
namespace {

struct Taps {
  int first;  // of four source pixels
  float weights[4];
};

Taps cubic(float at) {
  constexpr float a = -0.75f;
  const float floor = std::floor(at);
  const float t = at - floor, s = 1 - t;
  Taps taps{static_cast<int>(floor) - 1,
            {((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a,
             ((a + 2) * t - (a + 3)) * t * t + 1, ((a + 2) * s - (a + 3)) * s * s + 1, 0}};
  taps.weights[3] = 1 - taps.weights[0] - taps.weights[1] - taps.weights[2];
  return taps;
}

std::uint8_t to_byte(float value) {
  return static_cast<std::uint8_t>(std::clamp(value + 0.5f, 0.0f, 255.0f));
}

}  // namespace

void remap(const RemapSource& image, const float* x, const float* y, int count, RemapBorder border,
           std::uint8_t* result) {
  const auto right = static_cast<float>(image.width - 1);
  const auto bottom = static_cast<float>(image.height - 1);
  for (int i = 0; i < count; ++i, result += 3) {
    const bool outside =
        x[i] < -0.5f || y[i] < -0.5f || x[i] > right + 0.5f || y[i] > bottom + 0.5f;
    if (outside && border == RemapBorder::kBlack) {
      result[0] = result[1] = result[2] = 0;
      continue;
    }
    const Taps columns = cubic(std::clamp(x[i], 0.0f, right));
    const Taps rows = cubic(std::clamp(y[i], 0.0f, bottom));
    const bool whole = columns.first >= 0 && columns.first + 3 < image.width;
    float red = 0, green = 0, blue = 0;
    for (int v = 0; v < 4; ++v) {
      const std::uint8_t* row =
          image.data + std::clamp(rows.first + v, 0, image.height - 1) * image.stride;
      const std::uint8_t* pixel = row + 3 * static_cast<std::ptrdiff_t>(columns.first);
      float sums[3] = {0, 0, 0};
      for (int u = 0; u < 4; ++u, pixel += 3) {
        const std::uint8_t* p =
            whole ? pixel : row + 3 * std::clamp(columns.first + u, 0, image.width - 1);
        for (int c = 0; c < 3; ++c) sums[c] += columns.weights[u] * p[c];
      }
      red += rows.weights[v] * sums[0];
      green += rows.weights[v] * sums[1];
      blue += rows.weights[v] * sums[2];
    }
    result[0] = to_byte(red);
    result[1] = to_byte(green);
    result[2] = to_byte(blue);
  }
}

}  // namespace nmrf::kernels
