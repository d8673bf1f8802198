#include "viz/error_map.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/check.h"

namespace nmrf {
namespace {

struct Step {
  float below;  // n up to here, this value excluded
  std::uint8_t red, green, blue;
};
constexpr Step kSteps[] = {
    {0.0625f, 49, 54, 149}, {0.125f, 69, 117, 180},
    {0.25f, 116, 173, 209}, {0.5f, 171, 217, 233},
    {1.0f, 224, 243, 248},  {2.0f, 254, 224, 144},
    {4.0f, 253, 174, 97},   {8.0f, 244, 109, 67},
    {16.0f, 215, 48, 39},   {std::numeric_limits<float>::infinity(), 165, 0, 38}};

std::array<std::uint8_t, 3> color_at(float n, const ByteMap& occluded, int row, int col) {
  auto color = kitti_error_color(n);
  if (!occluded.empty() && occluded.at(row, col) != 0)
    for (std::uint8_t& channel : color) channel /= 2;
  return color;
}

}  // namespace

float kitti_error(float predicted, float truth) {
  if (!std::isfinite(predicted)) return std::numeric_limits<float>::infinity();
  const float error = std::abs(predicted - truth);
  if (truth == 0) return error / 3;
  return std::min(error / 3, 20 * error / std::abs(truth));
}

std::array<std::uint8_t, 3> kitti_error_color(float n) {
  for (const Step& step : kSteps)
    if (n < step.below) return {step.red, step.green, step.blue};
  const Step& worst = *(std::end(kSteps) - 1);
  return {worst.red, worst.green, worst.blue};
}

Image error_map(const FloatMap& predicted, const FloatMap& truth, const ByteMap& occluded,
                const ErrorMapOptions& options) {
  check(!truth.empty() && !predicted.empty(), ErrorKind::kUsage,
        "an error map needs two disparity maps; one of them is empty.");
  check(predicted.same_size(truth), ErrorKind::kUsage,
        "an error map needs maps of one size; the prediction has {}x{} pixels, the truth {}x{}.",
        predicted.width(), predicted.height(), truth.width(), truth.height());
  check(occluded.empty() || occluded.same_size(truth), ErrorKind::kUsage,
        "the occlusion mask must be of the size of the maps, {}x{}.", truth.width(),
        truth.height());
  FloatMap errors(truth.width(), truth.height());  // n, or -1 without truth
  std::transform(predicted.begin(), predicted.end(), truth.begin(), errors.begin(),
                 [](float value, float wanted) {
                   return std::isfinite(wanted) ? kitti_error(value, wanted) : -1.0f;
                 });
  Image picture(truth.width(), truth.height());
  for (int row = 0; row < truth.height(); ++row)
    for (int col = 0; col < truth.width(); ++col) {
      int from_row = row, from_col = col;
      if (options.dilate && errors.at(row, col) < 0) {
        for (int y = std::max(row - 1, 0); y <= std::min(row + 1, truth.height() - 1); ++y)
          for (int x = std::max(col - 1, 0); x <= std::min(col + 1, truth.width() - 1); ++x)
            if (errors.at(y, x) > errors.at(from_row, from_col)) {
              from_row = y;
              from_col = x;
            }
      }
      const float n = errors.at(from_row, from_col);
      std::array<std::uint8_t, 3> color{};
      if (n >= 0) color = color_at(n, occluded, from_row, from_col);
      std::copy(color.begin(), color.end(), picture.row(row) + 3 * col);
    }
  return picture;
}

}  // namespace nmrf
