#include "core/check.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/quantile.h"
#include "synth/synth.h"

namespace nmrf {

SynthCheck check_pair(const SynthPair& pair) {
  cv::Size size = pair.left.size();
  auto fits = [&](const cv::Mat& map, int type) {
    return map.size() == size && map.type() == type;
  };
  check(
      !pair.left.empty() && fits(pair.left, CV_8UC3) && fits(pair.right, CV_8UC3) &&
          fits(pair.left_disparity, CV_32FC1) && fits(pair.right_disparity, CV_32FC1) &&
          fits(pair.left_occluded, CV_8UC1) && fits(pair.right_occluded, CV_8UC1),
      ErrorKind::kInput,
      "the maps of a rendered pair do not fit together; expected images, disparities and masks of "
      "one size ({} x {})",
      size.width, size.height);
  SynthCheck out;
  out.min_disparity = 1e30;
  for (const cv::Mat* map : {&pair.left_disparity, &pair.right_disparity})
    for (int y = 0; y < size.height; ++y)
      for (int x = 0; x < size.width; ++x) {
        float d = map->at<float>(y, x);
        if (!std::isfinite(d) || d < 0) {
          ++out.not_finite;
          continue;
        }
        out.min_disparity = std::min<double>(out.min_disparity, d);
        out.max_disparity = std::max<double>(out.max_disparity, d);
      }
  std::vector<float> errors;
  std::int64_t shown = 0, inconsistent = 0, hidden = 0;
  for (int y = 0; y < size.height; ++y)
    for (int x = 0; x < size.width; ++x) {
      float d = pair.left_disparity.at<float>(y, x);
      if (pair.left_occluded.at<std::uint8_t>(y, x) || !std::isfinite(d)) {
        ++hidden;
        continue;
      }
      float at = std::clamp(static_cast<float>(x) - d, 0.f, static_cast<float>(size.width - 1));
      int x0 = std::min(static_cast<int>(at), size.width - 1),
          x1 = std::min(x0 + 1, size.width - 1);
      float f = at - static_cast<float>(x0);
      auto here = pair.left.at<cv::Vec3b>(y, x), a = pair.right.at<cv::Vec3b>(y, x0),
           b = pair.right.at<cv::Vec3b>(y, x1);
      float sum = 0;
      for (int k = 0; k < 3; ++k)
        sum += std::abs(static_cast<float>(here[k]) -
                        (static_cast<float>(a[k]) * (1 - f) + static_cast<float>(b[k]) * f));
      errors.push_back(sum / 3);
      // Between two right pixels of one slanted surface the disparity lies between theirs; at an
      // edge one of them belongs to the same surface.
      float d0 = pair.right_disparity.at<float>(y, x0), d1 = pair.right_disparity.at<float>(y, x1);
      float low = std::min(d0, d1), high = std::max(d0, d1);
      bool between = d >= low - 0.5f && d <= high + 0.5f && high - low < 2;
      bool agrees = between || std::abs(d - d0) <= 0.5f || std::abs(d - d1) <= 0.5f;
      ++shown;
      if (!agrees) ++inconsistent;
    }
  out.photo_median = quantile(errors, 0.5);
  out.photo_q90 = quantile(errors, 0.9);
  out.inconsistent = shown > 0 ? static_cast<double>(inconsistent) / static_cast<double>(shown) : 0;
  out.occluded = static_cast<double>(hidden) / static_cast<double>(size.area());
  return out;
}

}  // namespace nmrf
