#include "eval/fill.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace nmrf {
namespace {

// Fills one row; false when it holds no value at all.
bool fill_row(float* row, int width) {
  int last = -1;  // of the values seen so far
  for (int x = 0; x < width; ++x) {
    if (!std::isfinite(row[x])) continue;
    const float border = last < 0 ? row[x] : std::min(row[last], row[x]);
    std::fill(row + last + 1, row + x, border);
    last = x;
  }
  if (last < 0) return false;
  std::fill(row + last + 1, row + width, row[last]);
  return true;
}

}  // namespace

cv::Mat fill_background(const cv::Mat& disparity) {
  check(disparity.type() == CV_32FC1, ErrorKind::kUsage,
        "filling holes needs a disparity map of one float channel");
  cv::Mat filled = disparity.clone();
  int first = -1, last = -1;
  for (int y = 0; y < filled.rows; ++y)
    if (fill_row(filled.ptr<float>(y), filled.cols)) {
      if (first < 0) first = y;
      last = y;
    }
  if (first < 0) return filled;
  for (int y = 0; y < first; ++y) filled.row(first).copyTo(filled.row(y));
  for (int y = last + 1; y < filled.rows; ++y) filled.row(last).copyTo(filled.row(y));
  return filled;
}

}  // namespace nmrf
