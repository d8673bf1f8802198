#include "rig/feature_rectifier.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <opencv2/calib3d.hpp>
#include <opencv2/features2d.hpp>
#include <opencv2/imgproc.hpp>
#include <vector>

#include "core/check.h"
#include "core/quantile.h"
#include "kernels/remap.h"
#include "nmrf/opencv.h"

namespace nmrf {
namespace {

constexpr int kWorkingSide = 1600;  // px; larger images are reduced to this
constexpr int kFeatures = 4000;
constexpr float kRatio = 0.8f;  // of the nearest to the second nearest descriptor
constexpr std::size_t kLeastMatches = 60;
constexpr double kInlier = 1.0;        // working px off the epipolar line
constexpr double kFlat = 0.92;         // share of matches on one homography that leaves no parallax
constexpr double kMostResidual = 1.0;  // working px, root mean square
constexpr double kLeastCommon = 0.3;   // of the width and height
constexpr int kParameters = 6;
using Parameters = std::array<double, kParameters>;

struct Matches {
  std::vector<cv::Point2d> left, right;  // working px
  std::size_t size() const { return left.size(); }
};

Matches find_matches(const cv::Mat& left, const cv::Mat& right) {
  // A low threshold: dim and misty images have few features, others keep their strongest ones.
  const auto sift = cv::SIFT::create(kFeatures, 3, 0.01);
  std::vector<cv::KeyPoint> points[2];
  cv::Mat descriptors[2];
  sift->detectAndCompute(left, cv::noArray(), points[0], descriptors[0]);
  sift->detectAndCompute(right, cv::noArray(), points[1], descriptors[1]);
  Matches matches;
  if (points[0].size() < 2 || points[1].size() < 2) return matches;
  const cv::BFMatcher matcher(cv::NORM_L2);
  std::vector<std::vector<cv::DMatch>> there, back;
  matcher.knnMatch(descriptors[0], descriptors[1], there, 2);
  matcher.knnMatch(descriptors[1], descriptors[0], back, 1);
  for (const auto& nearest : there) {
    if (nearest.size() < 2 || nearest[0].distance > kRatio * nearest[1].distance) continue;
    const auto& other = back[static_cast<std::size_t>(nearest[0].trainIdx)];
    if (other.empty() || other[0].trainIdx != nearest[0].queryIdx) continue;
    matches.left.emplace_back(points[0][static_cast<std::size_t>(nearest[0].queryIdx)].pt);
    matches.right.emplace_back(points[1][static_cast<std::size_t>(nearest[0].trainIdx)].pt);
  }
  return matches;
}

Matches kept(const Matches& all, const cv::Mat& mask) {
  Matches result;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (mask.at<std::uint8_t>(static_cast<int>(i))) {
      result.left.push_back(all.left[i]);
      result.right.push_back(all.right[i]);
    }
  return result;
}

cv::Matx33d turned(double x, double y, double z) {
  cv::Matx33d result;
  cv::Rodrigues(cv::Vec3d(x, 0, 0), result);
  cv::Matx33d about_y, about_z;
  cv::Rodrigues(cv::Vec3d(0, y, 0), about_y);
  cv::Rodrigues(cv::Vec3d(0, 0, z), about_z);
  return about_z * about_y * result;
}

// Turns of the left camera (y, z) and of the right one (x, y, z) in radians, and the logarithm of
// the focal length in units of the image's size.
struct Model {
  cv::Size size;
  double focal(const Parameters& p) const {
    return (size.width + size.height) * std::exp(std::clamp(p[5], -1.5, 1.5));
  }
  cv::Matx33d camera(const Parameters& p) const {
    const double f = focal(p);
    return {f, 0, (size.width - 1) / 2.0, 0, f, (size.height - 1) / 2.0, 0, 0, 1};
  }
  cv::Matx33d left(const Parameters& p) const {
    return camera(p) * turned(0, p[0], p[1]) * camera(p).inv();
  }
  cv::Matx33d right(const Parameters& p) const {
    return camera(p) * turned(p[2], p[3], p[4]) * camera(p).inv();
  }
  // Sampson distances of the matches, px.
  void distances(const Matches& matches, const Parameters& p, std::vector<double>& result) const {
    const cv::Matx33d across(0, 0, 0, 0, 0, -1, 0, 1, 0);
    const cv::Matx33d f = right(p).t() * across * left(p);
    result.resize(matches.size());
    for (std::size_t i = 0; i < matches.size(); ++i) {
      const cv::Vec3d a(matches.left[i].x, matches.left[i].y, 1),
          b(matches.right[i].x, matches.right[i].y, 1);
      const cv::Vec3d line = f * a, back = f.t() * b;
      const double norm =
          line[0] * line[0] + line[1] * line[1] + back[0] * back[0] + back[1] * back[1];
      result[i] = b.dot(line) / std::sqrt(std::max(norm, 1e-30));
    }
  }
};

double squares(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values) sum += value * value;
  return sum;
}

// Levenberg and Marquardt, derivatives by differences. The focal length is held near its start by
// a weak pull: few scenes determine it.
double fit(const Model& model, const Matches& matches, Parameters& p) {
  const double start = p[5];
  auto evaluate = [&](const Parameters& at, std::vector<double>& values) {
    model.distances(matches, at, values);
    values.push_back(0.05 * std::sqrt(static_cast<double>(matches.size())) * (at[5] - start));
    return squares(values);
  };
  std::vector<double> now, moved;
  double error = evaluate(p, now), damping = 1e-3;
  for (int round = 0; round < 100; ++round) {
    cv::Matx<double, kParameters, kParameters> normal = normal.zeros();
    cv::Vec<double, kParameters> side;
    std::array<std::vector<double>, kParameters> slopes;
    for (int i = 0; i < kParameters; ++i) {
      Parameters q = p;
      q[static_cast<std::size_t>(i)] += 1e-6;
      evaluate(q, moved);
      auto& slope = slopes[static_cast<std::size_t>(i)];
      slope.resize(now.size());
      for (std::size_t k = 0; k < now.size(); ++k) slope[k] = (moved[k] - now[k]) / 1e-6;
    }
    for (int i = 0; i < kParameters; ++i) {
      const auto& a = slopes[static_cast<std::size_t>(i)];
      for (int j = 0; j < kParameters; ++j)
        for (std::size_t k = 0; k < now.size(); ++k)
          normal(i, j) += a[k] * slopes[static_cast<std::size_t>(j)][k];
      for (std::size_t k = 0; k < now.size(); ++k) side[i] += a[k] * now[k];
    }
    bool better = false;
    for (int tries = 0; tries < 8 && !better; ++tries) {
      auto damped = normal;
      for (int i = 0; i < kParameters; ++i) damped(i, i) *= 1 + damping;
      const cv::Vec<double, kParameters> step = damped.solve(side, cv::DECOMP_SVD);
      Parameters q = p;
      for (int i = 0; i < kParameters; ++i) q[static_cast<std::size_t>(i)] -= step[i];
      const double next = evaluate(q, moved);
      better = next < error * (1 - 1e-9);
      damping *= better ? 0.3 : 5;
      if (!better) continue;
      p = q;
      error = next;
      now = moved;
    }
    if (!better) break;
  }
  model.distances(matches, p, now);
  return std::sqrt(squares(now) / static_cast<double>(now.size()));
}

// The epipole of one image from the matrix whose null space it is; pixels, or far away.
cv::Point2d epipole(const cv::Matx33d& f) {
  cv::Vec3d null;
  cv::SVD::solveZ(cv::Mat(f), null);
  const double w = std::abs(null[2]) < 1e-12 ? 1e-12 : null[2];
  return {null[0] / w, null[1] / w};
}

void check_motion(const Matches& good, const cv::Matx33d& f, const cv::Size& size) {
  cv::Mat on_plane;
  cv::findHomography(good.left, good.right, on_plane, cv::USAC_MAGSAC, 2 * kInlier);
  const double flat = on_plane.empty() ? 0
                                       : static_cast<double>(cv::countNonZero(on_plane)) /
                                             static_cast<double>(good.size());
  check(flat < kFlat, ErrorKind::kInput,
        "the pair cannot be rectified: one homography explains {:.0f} % of {} matches, so there is "
        "too little parallax. The camera only rotated, or the scene is flat or far away: move the "
        "camera sideways by a few per cent of the distance to the nearest objects.",
        100 * flat, good.size());
  const cv::Point2d middle((size.width - 1) / 2.0, (size.height - 1) / 2.0);
  for (const cv::Point2d& point : {epipole(f), epipole(f.t())}) {
    const double x = std::abs(point.x - middle.x), y = std::abs(point.y - middle.y);
    check(x > 0.75 * size.width || y > 0.75 * size.height, ErrorKind::kInput,
          "the pair cannot be rectified: the camera moved along its viewing direction (epipole at "
          "{:.0f}, {:.0f} of the {}x{} image). Move it sideways instead.",
          point.x, point.y, size.width, size.height);
    check(
        x > y, ErrorKind::kInput,
        "the pair cannot be rectified: one camera stood above the other (epipole at {:.0f}, {:.0f} "
        "of the {}x{} image). Rotate both images by 90 degrees, or move the camera sideways.",
        point.x, point.y, size.width, size.height);
  }
}

cv::Point2d through(const cv::Matx33d& h, const cv::Point2d& p) {
  const cv::Vec3d q = h * cv::Vec3d(p.x, p.y, 1);
  return {q[0] / q[2], q[1] / q[2]};
}

// The rectangle that lies inside the image after the homography.
cv::Rect2d inside(const cv::Matx33d& h, const cv::Size& size) {
  double left = -1e9, right = 1e9, top = -1e9, bottom = 1e9;
  for (int i = 0; i <= 32; ++i) {
    const double x = (size.width - 1) * i / 32.0, y = (size.height - 1) * i / 32.0;
    left = std::max(left, through(h, {0, y}).x);
    right = std::min(right, through(h, {size.width - 1.0, y}).x);
    top = std::max(top, through(h, {x, 0}).y);
    bottom = std::min(bottom, through(h, {x, size.height - 1.0}).y);
  }
  return {left, top, std::max(0.0, right - left), std::max(0.0, bottom - top)};
}

std::array<double, 9> numbers(const cv::Matx33d& m) {
  std::array<double, 9> result;
  std::copy_n(m.val, 9, result.begin());
  return result;
}

}  // namespace

FeatureRectification rectify_by_features(const Image& left, const Image& right) {
  const double scale =
      std::min(1.0, static_cast<double>(kWorkingSide) / std::max(left.width(), left.height()));
  auto working = [&](const Image& image) {
    cv::Mat grey;
    cv::cvtColor(mat(const_cast<Image&>(image)), grey, cv::COLOR_RGB2GRAY);
    if (scale < 1) cv::resize(grey, grey, cv::Size(), scale, scale, cv::INTER_AREA);
    return grey;
  };
  const cv::Mat small_left = working(left), small_right = working(right);
  const cv::Size size = small_left.size();
  const Matches all = find_matches(small_left, small_right);
  auto too_few = [](std::size_t count) {
    check(count >= kLeastMatches, ErrorKind::kInput,
          "the pair cannot be rectified: only {} points were found in both images, {} are needed. "
          "Do both images show the same scene, sharp and with texture?",
          count, kLeastMatches);
  };
  too_few(all.size());
  cv::Mat mask;
  const cv::Mat found =
      cv::findFundamentalMat(all.left, all.right, cv::USAC_MAGSAC, kInlier, 0.9999, 5000, mask);
  Matches good = found.empty() ? Matches() : kept(all, mask);
  too_few(good.size());
  check_motion(good, cv::Matx33d(found), size);

  const Model model{size};
  Parameters best{};
  double residual = 1e9;
  for (double start : {-0.7, 0.0, 0.7}) {
    Parameters p{0, 0, 0, 0, 0, start};
    const double error = fit(model, good, p);
    if (error < 0.98 * residual) {
      residual = error;
      best = p;
    }
  }
  check(residual <= kMostResidual, ErrorKind::kInput,
        "the pair cannot be rectified: rotating the cameras leaves an error of {:.1f} px at {} "
        "matches. Is there strong lens distortion, a rolling shutter or motion? Calibrate the "
        "cameras (nmrf calibrate).",
        residual / scale, good.size());

  // In pixels of the images as they are: the working ones are reduced, centres aligned.
  const double factor_x = static_cast<double>(size.width) / left.width(),
               factor_y = static_cast<double>(size.height) / left.height();
  const cv::Matx33d reduce(factor_x, 0, (factor_x - 1) / 2, 0, factor_y, (factor_y - 1) / 2, 0, 0,
                           1);
  cv::Matx33d h_left = reduce.inv() * model.left(best) * reduce;
  cv::Matx33d h_right = reduce.inv() * model.right(best) * reduce;
  const cv::Size full(left.width(), left.height());
  FeatureRectification result;
  std::vector<double> disparities;
  double before = 0, after = 0;
  const cv::Matx33d enlarge = reduce.inv();
  for (std::size_t i = 0; i < good.size(); ++i) {
    const cv::Point2d a = through(enlarge, good.left[i]), b = through(enlarge, good.right[i]);
    const cv::Point2d p = through(h_left, a), q = through(h_right, b);
    before += (a.y - b.y) * (a.y - b.y);
    after += (p.y - q.y) * (p.y - q.y);
    disparities.push_back(p.x - q.x);
  }
  result.matches = static_cast<int>(good.size());
  result.before = std::sqrt(before / static_cast<double>(good.size()));
  result.residual = std::sqrt(after / static_cast<double>(good.size()));
  result.turn = (best[4] - best[1]) * 180 / std::numbers::pi;
  result.focal = model.focal(best) / scale;
  // The directions of the cameras are known to some pixels only. Nothing may lie behind the
  // farthest.
  const double least = quantile(disparities, 0.01);
  if (least < 1) result.shift = 1 - least + 0.01 * full.width;
  h_right = cv::Matx33d(1, 0, -result.shift, 0, 1, 0, 0, 0, 1) * h_right;

  const ImageFrame common =
      common_frame(numbers(h_left), numbers(h_right), full.width, full.height);
  check(common.width >= kLeastCommon * full.width && common.height >= kLeastCommon * full.height,
        ErrorKind::kInput,
        "the pair cannot be rectified: the images have only {} x {} of {} x {} pixels in common. "
        "Turn the cameras less against each other, or move them less.",
        common.width, common.height, full.width, full.height);
  const cv::Matx33d crop(1, 0, -common.x, 0, 1, -common.y, 0, 0, 1);
  result.left = numbers(crop * h_left);
  result.right = numbers(crop * h_right);
  result.width = common.width;
  result.height = common.height;
  return result;
}

ImageFrame common_frame(const std::array<double, 9>& left, const std::array<double, 9>& right,
                        int width, int height) {
  const cv::Size size(width, height);
  const cv::Rect2d common =
      inside(cv::Matx33d(left.data()), size) & inside(cv::Matx33d(right.data()), size);
  if (common.empty()) return {};
  const double x = std::ceil(common.x), y = std::ceil(common.y);
  return {x, y, static_cast<int>(common.x + common.width - x) + 1,
          static_cast<int>(common.y + common.height - y) + 1};
}

Image warp(const Image& image, const std::array<double, 9>& homography, int width, int height) {
  const cv::Matx33d back = cv::Matx33d(homography.data()).inv();
  Image result(width, height);
  std::vector<float> xs(static_cast<std::size_t>(width)), ys(xs.size());
  const kernels::RemapSource source{image.data(), static_cast<std::ptrdiff_t>(image.row_bytes()),
                                    image.width(), image.height()};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const cv::Point2d at = through(back, {static_cast<double>(x), static_cast<double>(y)});
      xs[static_cast<std::size_t>(x)] = static_cast<float>(at.x);
      ys[static_cast<std::size_t>(x)] = static_cast<float>(at.y);
    }
    kernels::remap(source, xs.data(), ys.data(), width, kernels::RemapBorder::kBlack,
                   result.row(y));
  }
  return result;
}

}  // namespace nmrf
