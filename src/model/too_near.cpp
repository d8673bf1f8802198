#include "model/too_near.h"

#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>
#include <vector>

#include "core/check.h"
#include "core/quantile.h"
#include "model/colour.h"
#include "model/right_row.h"

namespace nmrf {
namespace {

// Differences of colour are means of the three channels, in grey levels.
constexpr float kUnlike = 17;        // from which on partners are unlike, and
constexpr float kTimesMedian = 5;    // times the median difference: noise, unequal exposure
constexpr float kAlike = 0.3f;       // of that limit: below it they are alike
constexpr float kElsewhere = 0.6f;   // of that limit: below it a group is in the right view
constexpr int kMean = 5;             // px, side of the square over which differences are averaged
constexpr int kSmallestGroup = 200;  // px
constexpr int kZone = 3;             // one part in so many of the width is looked at
constexpr int kEdge = 3;             // px from the left edge that count as touching it
constexpr int kFilled = 4;           // one part in so many of its box; less is several things

// The least difference of a colour from those of three columns of a row.
float difference(const cv::Vec3b& colour, const cv::Vec3b* row, int at, int width) {
  int least = 3 * 255;
  for (int x = std::max(0, at - 1); x <= std::min(width - 1, at + 1); ++x)
    least = std::min(least, colour_difference(colour, row[x]));
  return static_cast<float>(least) / 3;
}

// Where the map says that the right view shows a pixel: how much it differs from its partner there,
// itself and in the mean around it. Elsewhere 0 and NaN. `limit`: from which on partners are
// unlike.
struct Differences {
  cv::Mat own, mean;
  float limit;
};
Differences differences(const cv::Mat& map, const cv::Mat& left, const cv::Mat& right) {
  cv::Mat own = cv::Mat::zeros(map.size(), CV_32FC1), seen = own.clone();
  std::vector<float> all;
  RightRow row;
  for (int y = 0; y < map.rows; ++y) {
    const float* values = map.ptr<float>(y);
    row.look(values, map.cols);
    for (int x = 0; x < map.cols; ++x) {
      const int at = row.partner(x, values[x]);
      if (at < 0 || row.hides(x, values[x]) != RightRow::kSeen) continue;
      seen.at<float>(y, x) = 1;
      own.at<float>(y, x) =
          difference(left.at<cv::Vec3b>(y, x), right.ptr<cv::Vec3b>(y), at, map.cols);
      all.push_back(own.at<float>(y, x));
    }
  }
  const float limit = std::max(kUnlike, kTimesMedian * quantile(all, 0.5));
  cv::Mat sum, count;
  cv::boxFilter(own, sum, CV_32F, {kMean, kMean}, {-1, -1}, false, cv::BORDER_CONSTANT);
  cv::boxFilter(seen, count, CV_32F, {kMean, kMean}, {-1, -1}, false, cv::BORDER_CONSTANT);
  cv::Mat mean = sum / cv::max(count, 1);
  mean.setTo(std::nanf(""), seen == 0);
  return {own, mean, limit};
}

// Whether some shift of a group, by which the right view has at least half of it, looks like it.
bool in_right_view(const std::vector<cv::Point>& group, const cv::Mat& left, const cv::Mat& right,
                   int most_shift, float limit) {
  for (int shift = 0; shift <= most_shift; ++shift) {
    float sum = 0;
    std::size_t count = 0;
    for (const auto& p : group) {
      if (p.x < shift) continue;
      sum += difference(left.at<cv::Vec3b>(p), right.ptr<cv::Vec3b>(p.y), p.x - shift, right.cols);
      ++count;
    }
    if (2 * count < group.size()) return false;
    if (sum < limit * static_cast<float>(count)) return true;
  }
  return false;
}

// The pixels of each group, 8-connected or 4-connected; the first is empty (what is no group).
std::vector<std::vector<cv::Point>> groups_of(const cv::Mat& mask, int connectivity) {
  cv::Mat labels;
  std::vector<std::vector<cv::Point>> groups(
      static_cast<std::size_t>(cv::connectedComponents(mask, labels, connectivity)));
  for (int y = 0; y < mask.rows; ++y)
    for (int x = 0; x < mask.cols; ++x)
      if (const int label = labels.at<int>(y, x); label != 0)
        groups[static_cast<std::size_t>(label)].emplace_back(x, y);
  return groups;
}

}  // namespace

cv::Mat put_out_of_view(const cv::Mat& map, const cv::Mat& left, const cv::Mat& right) {
  check(map.type() == CV_32FC1 && left.type() == CV_8UC3 && right.type() == CV_8UC3 &&
            map.size() == left.size() && map.size() == right.size(),
        ErrorKind::kUsage, "finishing a disparity map needs both images, of its size");
  cv::Mat result = map.clone();
  const int zone = map.cols / kZone;
  if (zone < 1 || map.rows < 1) return result;
  const auto [all_own, all_mean, limit] = differences(map, left, right);
  const cv::Mat own = all_own.colRange(0, zone), mean = all_mean.colRange(0, zone);

  enum : int { kUndecided, kInView, kOutOfView };
  cv::Mat marks(map.rows, zone, CV_32SC1, cv::Scalar(kUndecided));
  marks.setTo(kInView, mean < kAlike * limit);
  bool any = false;
  for (const auto& group : groups_of((mean > limit) & (own > kAlike * limit), 8)) {
    if (group.size() < kSmallestGroup || cv::boundingRect(group).br().x == zone ||
        in_right_view(group, left, right, zone, kElsewhere * limit))
      continue;
    for (const auto& p : group) marks.at<int>(p) = kOutOfView;
    any = true;
  }
  if (!any) return result;

  // The watershed leaves the outermost pixels out, hence a frame of one.
  cv::Mat framed, framed_marks;
  cv::copyMakeBorder(left.colRange(0, zone), framed, 1, 1, 1, 1, cv::BORDER_REPLICATE);
  cv::copyMakeBorder(marks, framed_marks, 1, 1, 1, 1, cv::BORDER_CONSTANT, cv::Scalar(kUndecided));
  cv::watershed(framed, framed_marks);
  marks = framed_marks(cv::Rect(1, 1, zone, map.rows));
  for (const auto& group : groups_of(marks == kOutOfView, 4)) {
    if (group.size() < kSmallestGroup) continue;
    const cv::Rect box = cv::boundingRect(group);
    if (box.x > kEdge || box.br().x > zone - 2 ||
        kFilled * static_cast<int>(group.size()) < box.area())
      continue;
    for (const auto& p : group)
      if (float& value = result.at<float>(p); std::isfinite(value))
        value = static_cast<float>(box.br().x);
  }
  return result;
}

}  // namespace nmrf
