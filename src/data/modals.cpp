#include "data/modals.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/check.h"

namespace nmrf {
namespace {

constexpr double kSuppress = 0.5;  // px

// A group of pixels of one cell: disparities in ascending order.
struct Group {
  std::vector<float> values;
  double median = 0;
};

float lower_median(const std::vector<float>& sorted) { return sorted[(sorted.size() - 1) / 2]; }

// Larger groups first; stable, so that equal ones keep their order.
void sort_by_size(std::vector<Group>& groups) {
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    return a.values.size() > b.values.size();
  });
}

// pixels: (segment, disparity) of the known pixels of a cell; comes back sorted.
cv::Vec4f cell_modals(std::vector<std::pair<int, float>>& pixels) {
  std::sort(pixels.begin(), pixels.end());
  std::vector<Group> groups;  // by ascending id
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    if (i == 0 || pixels[i].first != pixels[i - 1].first) groups.emplace_back();
    groups.back().values.push_back(pixels[i].second);
  }
  for (Group& group : groups) group.median = lower_median(group.values);
  sort_by_size(groups);

  std::vector<Group> kept;
  for (Group& group : groups) {
    auto by = std::find_if(kept.begin(), kept.end(), [&](const Group& other) {
      return std::abs(other.median - group.median) < kSuppress;
    });
    if (by == kept.end())
      kept.push_back(std::move(group));
    else
      by->values.insert(by->values.end(), group.values.begin(), group.values.end());
  }
  sort_by_size(kept);

  cv::Vec4f modals = cv::Vec4f::all(std::numeric_limits<float>::quiet_NaN());
  for (std::size_t i = 0; i < std::min<std::size_t>(kModals, kept.size()); ++i) {
    std::sort(kept[i].values.begin(), kept[i].values.end());
    modals[static_cast<int>(i)] = lower_median(kept[i].values);
  }
  return modals;
}

}  // namespace

cv::Mat disparity_modals(const cv::Mat& disparity, const cv::Mat& segments) {
  check(disparity.type() == CV_32FC1 && !disparity.empty(), ErrorKind::kUsage,
        "modals: the disparity is {} x {} of OpenCV type {}; expected one channel of floats",
        disparity.cols, disparity.rows, disparity.type());
  check(
      segments.type() == CV_32SC1 && segments.size() == disparity.size(), ErrorKind::kUsage,
      "modals: the segments are {} x {} of OpenCV type {}; expected {} x {} of 32-bit integers, as "
      "the disparity",
      segments.cols, segments.rows, segments.type(), disparity.cols, disparity.rows);
  cv::Mat modals((disparity.rows + kModalCell - 1) / kModalCell,
                 (disparity.cols + kModalCell - 1) / kModalCell, CV_32FC4);
  std::vector<std::pair<int, float>> pixels;
  for (int y = 0; y < modals.rows; ++y)
    for (int x = 0; x < modals.cols; ++x) {
      pixels.clear();
      const int bottom = std::min(disparity.rows, (y + 1) * kModalCell);
      const int right = std::min(disparity.cols, (x + 1) * kModalCell);
      for (int row = y * kModalCell; row < bottom; ++row) {
        const auto* values = disparity.ptr<float>(row);
        const auto* ids = segments.ptr<int>(row);
        for (int col = x * kModalCell; col < right; ++col)
          if (std::isfinite(values[col]) && values[col] > 0)
            pixels.emplace_back(ids[col], values[col]);
      }
      modals.at<cv::Vec4f>(y, x) = cell_modals(pixels);
    }
  return modals;
}

void add_segments(Sample& sample, const Segmenter& segmenter, const SegmentOptions& options) {
  if (sample.disparity.empty()) return;
  const bool ids = options.use_objects && sample.objects_everywhere;
  auto split = [&](const cv::Mat& objects, const cv::Mat& image) {
    return ids && !objects.empty() ? objects : segmenter(image);
  };
  sample.segments = split(sample.objects, sample.left);
  if (options.both_views && !sample.right_disparity.empty())
    sample.right_segments = split(sample.right_objects, sample.right);
}

void add_modals(Sample& sample) {
  if (sample.disparity.empty()) return;
  cv::Mat segments = sample.segments;
  if (segments.empty() && sample.objects_everywhere) segments = sample.objects;
  check(!segments.empty(), ErrorKind::kUsage,
        "modals: the sample {} has neither segments nor an object id for every surface",
        sample.name);
  sample.modals = disparity_modals(sample.disparity, segments);
  sample.segments.release();
  sample.right_segments.release();
}

}  // namespace nmrf
