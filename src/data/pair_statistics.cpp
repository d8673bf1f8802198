#include "data/pair_statistics.h"

#include <cmath>
#include <opencv2/imgproc.hpp>
#include <vector>

#include "core/check.h"
#include "core/quantile.h"

namespace nmrf {
namespace {

constexpr int kWindow = 9;    // pixels
constexpr double kPlain = 4;  // grey levels
constexpr int kBlock = 16;    // of the estimate of noise, pixels
constexpr double kQuiet = 0.05;
constexpr int kWhite = 250, kBlack = 8;

double share(const cv::Mat& mask) {
  return 100.0 * cv::countNonZero(mask) / static_cast<double>(mask.total());
}

// Of the second difference of second differences, which leaves nothing of smooth shading and
// weighs a pixel's noise by 6 in all; its mean size is sqrt(2 / pi) of its deviation. Blocks that
// are cut off at white or black say nothing.
double noise_floor(const cv::Mat& grey) {
  const cv::Mat kernel = (cv::Mat_<float>(3, 3) << 1, -2, 1, -2, 4, -2, 1, -2, 1);
  cv::Mat rough;
  cv::filter2D(grey, rough, CV_32F, kernel);
  rough = cv::abs(rough);
  std::vector<double> found;
  for (int y = 0; y + kBlock <= grey.rows; y += kBlock)
    for (int x = 0; x + kBlock <= grey.cols; x += kBlock) {
      const cv::Rect block(x, y, kBlock, kBlock);
      const double level = cv::mean(grey(block))[0];
      if (level > 15 && level < 240)
        found.push_back(cv::mean(rough(block))[0] * std::sqrt(CV_PI / 2) / 6);
    }
  return quantile(found, kQuiet);
}

}  // namespace

PairStatistics pair_statistics(const cv::Mat& left, const cv::Mat& disparity) {
  check(
      !left.empty() && left.type() == CV_8UC3 &&
          (disparity.empty() || (disparity.type() == CV_32FC1 && disparity.size() == left.size())),
      ErrorKind::kUsage, "statistics need an 8-bit colour image and a disparity map of its size");
  PairStatistics out;
  std::vector<float> known;
  std::size_t outside = 0;
  for (int y = 0; y < disparity.rows; ++y)
    for (int x = 0; x < disparity.cols; ++x) {
      const float d = disparity.at<float>(y, x);
      if (!std::isfinite(d)) continue;
      known.push_back(d);
      outside += static_cast<float>(x) < d;
    }
  if (!known.empty()) {
    out.outside = 100.0 * static_cast<double>(outside) / static_cast<double>(known.size());
    auto part = [&](double q) { return 100.0 * quantile(known, q) / left.cols; };
    out.near = part(0.99), out.middle = part(0.5), out.far = part(0.05);
  }

  cv::Mat bytes, grey, mean, square, deviation;
  cv::cvtColor(left, bytes, cv::COLOR_BGR2GRAY);
  bytes.convertTo(grey, CV_32F);
  cv::blur(grey, mean, {kWindow, kWindow});
  cv::blur(grey.mul(grey), square, {kWindow, kWindow});
  cv::sqrt(cv::max(square - mean.mul(mean), 0), deviation);
  out.plain = share(deviation < kPlain);
  std::vector<float> values(deviation.begin<float>(), deviation.end<float>());
  out.contrast = quantile(values, 0.5);
  out.noise = noise_floor(grey);
  out.white = share(bytes >= kWhite), out.black = share(bytes <= kBlack);
  return out;
}

}  // namespace nmrf
