#include "data/pair_checks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <opencv2/features2d.hpp>
#include <opencv2/imgproc.hpp>

#include "core/check.h"
#include "core/quantile.h"
#include "core/rng.h"

namespace nmrf {
namespace {

constexpr int kWorkingWidth = 1000;  // larger images are reduced to this
constexpr int kFeatures = 1000;
constexpr int kMaxHamming = 50;  // of ORB's 256 bits; wrong matches lie around 80
constexpr double kInlier = 1.5;  // working pixels off the fitted vertical offset
constexpr int kRounds = 300;
constexpr int kLeastMatches = 40;               // consistent ones
constexpr double kLeastShare = 0.35;            // of all matches
constexpr double kVerticalLimit = 1.5;          // image pixels
constexpr double kVerticalWorkingLimit = 0.75;  // working pixels: what can be measured at all
constexpr double kSwappedShare = 0.8;

// A feature at (x, y) of the left image, found at (x - dx, y - dy) of the right one; working
// pixels, x and y from the middle of the image.
struct Match {
  double x, y, dx, dy;
};

// dy = a + b x + c y: b is a turn of one camera against the other, c a difference of scale.
struct Plane {
  double a = 0, b = 0, c = 0;
  double at(const Match& match) const { return a + b * match.x + c * match.y; }
};

cv::Mat working_grey(const cv::Mat& image, double scale) {
  cv::Mat grey;
  if (image.channels() == 3)
    cv::cvtColor(image, grey, cv::COLOR_BGR2GRAY);
  else
    grey = image;
  if (scale < 1) cv::resize(grey, grey, {}, scale, scale, cv::INTER_AREA);
  return grey;
}

std::vector<Match> match_features(const cv::Mat& left, const cv::Mat& right) {
  // Few pyramid levels: coarse ones place a feature to several pixels only.
  auto orb = cv::ORB::create(kFeatures, 1.2f, 4);
  std::vector<cv::KeyPoint> left_points, right_points;
  cv::Mat left_words, right_words;
  orb->detectAndCompute(left, {}, left_points, left_words);
  orb->detectAndCompute(right, {}, right_points, right_words);
  std::vector<Match> matches;
  if (left_words.empty() || right_words.empty()) return matches;
  std::vector<cv::DMatch> found;
  cv::BFMatcher(cv::NORM_HAMMING, true).match(left_words, right_words, found);
  for (const auto& match : found) {
    if (match.distance > kMaxHamming) continue;
    cv::Point2f p = left_points[static_cast<std::size_t>(match.queryIdx)].pt;
    cv::Point2f q = right_points[static_cast<std::size_t>(match.trainIdx)].pt;
    matches.push_back({p.x - left.cols / 2.0, p.y - left.rows / 2.0, p.x - q.x, p.y - q.y});
  }
  return matches;
}

// The plane through three matches; false when they are nearly on a line.
bool through(const Match& p, const Match& q, const Match& r, Plane& plane) {
  double ux = q.x - p.x, uy = q.y - p.y, vx = r.x - p.x, vy = r.y - p.y;
  double determinant = ux * vy - uy * vx;
  if (std::abs(determinant) < 1000) return false;  // twice the triangle's area, square pixels
  double du = q.dy - p.dy, dv = r.dy - p.dy;
  plane.b = (du * vy - dv * uy) / determinant;
  plane.c = (dv * ux - du * vx) / determinant;
  plane.a = p.dy - plane.b * p.x - plane.c * p.y;
  return true;
}

std::vector<Match> consistent(const std::vector<Match>& matches, const Plane& plane) {
  std::vector<Match> kept;
  for (const auto& match : matches)
    if (std::abs(match.dy - plane.at(match)) < kInlier) kept.push_back(match);
  return kept;
}

// Least squares.
Plane fit(const std::vector<Match>& matches) {
  cv::Matx33d a = cv::Matx33d::zeros();
  cv::Vec3d b(0, 0, 0);
  for (const auto& match : matches) {
    cv::Vec3d row(1, match.x, match.y);
    a += row * row.t();
    b += row * match.dy;
  }
  cv::Vec3d solution = a.solve(b, cv::DECOMP_SVD);
  return {solution[0], solution[1], solution[2]};
}

// The plane that most matches agree with (repeats exactly: the draws are seeded), then fitted to
// these.
Plane robust_plane(const std::vector<Match>& matches) {
  Rng rng(1);
  Plane best;
  std::size_t most = consistent(matches, best).size();  // a good pair has no offset at all
  auto last = static_cast<std::int64_t>(matches.size()) - 1;
  for (int round = 0; round < kRounds; ++round) {
    auto draw = [&] { return matches[static_cast<std::size_t>(rng.integer(0, last))]; };
    Plane plane;
    Match p = draw(), q = draw(), r = draw();
    if (!through(p, q, r, plane)) continue;
    std::size_t count = consistent(matches, plane).size();
    if (count > most) {
      most = count;
      best = plane;
    }
  }
  for (int i = 0; i < 3; ++i)
    if (auto kept = consistent(matches, best); kept.size() >= 3) best = fit(kept);
  return best;
}

}  // namespace

PairCheck check_pair(const cv::Mat& left, const cv::Mat& right) {
  for (const cv::Mat* image : {&left, &right})
    check(!image->empty() && (image->type() == CV_8UC3 || image->type() == CV_8UC1),
          ErrorKind::kUsage, "pair check: expected 8-bit images of 1 or 3 channels");
  check(left.size() == right.size(), ErrorKind::kUsage,
        "pair check: the images have different sizes ({} x {}, {} x {})", left.cols, left.rows,
        right.cols, right.rows);
  PairCheck result;
  const double scale = std::min(1.0, static_cast<double>(kWorkingWidth) / left.cols);
  const cv::Mat small_left = working_grey(left, scale), small_right = working_grey(right, scale);
  if (std::min(small_left.cols, small_left.rows) < 32) return result;
  const auto all = match_features(small_left, small_right);
  if (all.size() < kLeastMatches) return result;
  const Plane plane = robust_plane(all);
  const auto good = consistent(all, plane);
  result.matches = static_cast<int>(good.size());
  result.conclusive =
      good.size() >= kLeastMatches &&
      static_cast<double>(good.size()) >= kLeastShare * static_cast<double>(all.size());
  if (good.empty()) return result;

  std::vector<double> dx, dy;
  int moved = 0, negative = 0;
  for (const auto& match : good) {
    dx.push_back(match.dx / scale);
    dy.push_back(match.dy / scale);
    if (std::abs(match.dx) < 1) continue;  // far away: says nothing about the order
    ++moved;
    negative += match.dx < 0;
  }
  result.vertical = quantile(dy, 0.5);
  result.horizontal = quantile(dx, 0.5);
  result.negative_share = moved ? static_cast<double>(negative) / moved : 0;
  // Of a linear function over a rectangle around the origin.
  const double w = small_left.cols, h = small_left.rows;
  const double rms = std::sqrt(plane.a * plane.a + plane.b * plane.b * w * w / 12 +
                               plane.c * plane.c * h * h / 12);
  result.vertical_rms = rms / scale;
  if (!result.conclusive) return result;

  result.swapped = moved >= kLeastMatches / 2 && result.negative_share >= kSwappedShare;
  result.not_rectified = result.vertical_rms > kVerticalLimit && rms > kVerticalWorkingLimit;
  if (result.swapped)
    result.warnings.push_back(
        fmt::format("The images look swapped: {:.0f} % of {} matched points lie farther right in "
                    "the right image "
                    "(median offset {:.1f} px). Is the left camera's image given first?",
                    100 * result.negative_share, moved, result.horizontal));
  if (result.not_rectified)
    result.warnings.push_back(fmt::format(
        "The images do not look rectified: matched points differ by {:.1f} px in height (root mean "
        "square over the image; median {:.1f} px, turn {:.2f} degrees). Matching searches along "
        "rows "
        "only: rectify the pair first.",
        result.vertical_rms, result.vertical, std::atan(plane.b) * 180 / CV_PI));
  return result;
}

}  // namespace nmrf
