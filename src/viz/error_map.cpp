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

cv::Vec3b color_at(float n, const cv::Mat& occluded, int row, int col) {
  const cv::Vec3b color = kitti_error_color(n);
  if (occluded.empty() || occluded.at<std::uint8_t>(row, col) == 0) return color;
  return {static_cast<std::uint8_t>(color[0] / 2), static_cast<std::uint8_t>(color[1] / 2),
          static_cast<std::uint8_t>(color[2] / 2)};
}

}  // namespace

float kitti_error(float predicted, float truth) {
  if (!std::isfinite(predicted)) return std::numeric_limits<float>::infinity();
  const float error = std::abs(predicted - truth);
  if (truth == 0) return error / 3;
  return std::min(error / 3, 20 * error / std::abs(truth));
}

cv::Vec3b kitti_error_color(float n) {
  for (const Step& step : kSteps)
    if (n < step.below) return {step.blue, step.green, step.red};
  const Step& worst = *(std::end(kSteps) - 1);
  return {worst.blue, worst.green, worst.red};
}

cv::Mat error_map(const cv::Mat& predicted, const cv::Mat& truth, const cv::Mat& occluded,
                  const ErrorMapOptions& options) {
  check(
      !truth.empty() && truth.dims == 2 && truth.type() == CV_32FC1 && predicted.type() == CV_32FC1,
      ErrorKind::kUsage, "an error map needs two disparity maps of type CV_32FC1.");
  check(predicted.size() == truth.size(), ErrorKind::kUsage,
        "an error map needs maps of one size; the prediction has {}x{} pixels, the truth {}x{}.",
        predicted.cols, predicted.rows, truth.cols, truth.rows);
  check(occluded.empty() || (occluded.type() == CV_8UC1 && occluded.size() == truth.size()),
        ErrorKind::kUsage, "the occlusion mask must be CV_8UC1 and of the size of the maps, {}x{}.",
        truth.cols, truth.rows);
  cv::Mat errors(truth.size(), CV_32FC1);  // n, or -1 without truth
  for (int row = 0; row < truth.rows; ++row)
    for (int col = 0; col < truth.cols; ++col) {
      const float wanted = truth.at<float>(row, col);
      errors.at<float>(row, col) =
          std::isfinite(wanted) ? kitti_error(predicted.at<float>(row, col), wanted) : -1.0f;
    }
  cv::Mat picture = cv::Mat::zeros(truth.size(), CV_8UC3);
  for (int row = 0; row < truth.rows; ++row)
    for (int col = 0; col < truth.cols; ++col) {
      int from_row = row, from_col = col;
      if (options.dilate && errors.at<float>(row, col) < 0) {
        for (int y = std::max(row - 1, 0); y <= std::min(row + 1, truth.rows - 1); ++y)
          for (int x = std::max(col - 1, 0); x <= std::min(col + 1, truth.cols - 1); ++x)
            if (errors.at<float>(y, x) > errors.at<float>(from_row, from_col)) {
              from_row = y;
              from_col = x;
            }
      }
      const float n = errors.at<float>(from_row, from_col);
      if (n >= 0) picture.at<cv::Vec3b>(row, col) = color_at(n, occluded, from_row, from_col);
    }
  return picture;
}

}  // namespace nmrf
