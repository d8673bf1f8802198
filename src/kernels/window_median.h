// Weighted medians over square windows, in which a pixel weighs the more the closer its colour is
// to that of the middle.
//
// The weighted median is the smallest value that has, with the smaller ones, half of the weight: it
// is always one of the window's values, so that no disparity between two surfaces is made up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace nmrf::kernels {

inline constexpr int kMostMedianRadius = 16;
// Columns that must be readable left and right of each row of a plane.
inline constexpr int kLeftMargin = kMostMedianRadius, kRightMargin = 3 * kMostMedianRadius;

// Pixel (x, y) of a plane is at y * stride + x. Values that are not finite, such as those of the
// margins, do not vote.
struct MedianPlanes {
  const float* values = nullptr;           // disparities, px
  const std::uint32_t* colours = nullptr;  // three channels of 8 bits, the fourth 0
  std::ptrdiff_t stride = 0;
  int width = 0, height = 0;
  int radius = 0;  // 1 to kMostMedianRadius
};

struct MedianPixel {
  std::int32_t x, y;
};

// What the right view shows, as a disparity map of the left one tells it. Planes of the same
// layout.
struct RightViewPlanes {
  const float* nearest = nullptr;  // the largest disparity that the right view's column shows, or 0
  const float* hider = nullptr;    // the disparity of what hides a left pixel; infinity: nothing
};

// Disparities that differ by more belong to two surfaces, px.
inline constexpr float kSurfaceStep = 1;

// Both for one row of a map (any memory). Up to kRightMargin floats are written behind the two
// rows. Returns the first column from which on no match lies beyond the right view's left edge.
int look_from_right(const float* row, int width, float* nearest, float* hider);

// results[i] for pixels[i]: the median of the whole window; NaN without voters.
void weighted_medians(const MedianPlanes& planes, std::span<const MedianPixel> pixels,
                      float* results);

// The same among the values right of the pixel with which the right view would not show it.
void border_medians(const MedianPlanes& planes, const RightViewPlanes& right,
                    std::span<const MedianPixel> pixels, float* results);

// The same among the values with which the right view would not show the pixel and that are farther
// away than what hides it; of what is hidden itself only columns to the left vote.
void occlusion_medians(const MedianPlanes& planes, const RightViewPlanes& right,
                       std::span<const MedianPixel> pixels, float* results);

}  // namespace nmrf::kernels
