#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>

#include "core/check.h"
#include "core/quantile.h"
#include "core/rng.h"
#include "kernels/resample.h"
#include "matching/alignment.h"
#include "matching/image_features.h"
#include "nmrf/checks.h"

namespace nmrf {
namespace {

constexpr int kWorkingWidth = 1000;  // larger images are reduced to this
constexpr int kFeatures = 1000;
constexpr int kMaxHamming = 32;  // of 256 bits; more would let in matches by chance
constexpr double kInlier = 1.5;  // working pixels off the fitted vertical offset
constexpr int kRounds = 300;
constexpr int kLeastMatches = 40;               // consistent ones
constexpr double kLeastShare = 0.35;            // of all matches
constexpr int kUnrelatedFeatures = 300;         // so many in both images,
constexpr int kUnrelatedMatches = 30;           // and fewer consistent matches: no pair
constexpr double kVerticalLimit = 1.5;          // image pixels
constexpr double kVerticalWorkingLimit = 0.75;  // working pixels: what can be measured at all
constexpr double kSwappedShare = 0.8;
constexpr double kCorrected = 0.6;         // image pixels: less is left as it is
constexpr double kCorrectedWorking = 0.3;  // working pixels

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

Grey working_grey(const Image& image, double scale) {
  if (scale >= 1) return to_grey(image);
  const int width = static_cast<int>(std::lround(image.width() * scale));
  const int height = std::max(1, static_cast<int>(std::lround(image.height() * scale)));
  Image small(width, height);
  kernels::Resampler resampler;
  resampler.prepare(kernels::Resampling::kArea, image.width(), image.height(), width, height);
  std::vector<float> work(resampler.work_floats());
  resampler.rows(image.data(), static_cast<std::ptrdiff_t>(image.row_bytes()), small.data(),
                 static_cast<std::ptrdiff_t>(small.row_bytes()), 0, height, work.data());
  return to_grey(small);
}

// `features` is set to the smaller number of features in the two images.
std::vector<Match> find_matches(const Grey& left, const Grey& right, std::size_t& features) {
  const Features left_features = find_features(left, kFeatures);
  const Features right_features = find_features(right, kFeatures);
  features = std::min(left_features.places.size(), right_features.places.size());
  std::vector<Match> matches;
  for (const auto& match : match_features(left_features, right_features, kMaxHamming)) {
    const Feature &p = left_features.places[match.left], &q = right_features.places[match.right];
    matches.push_back({p.x - left.width / 2.0, p.y - left.height / 2.0, p.x - q.x, p.y - q.y});
  }
  return matches;
}

// The plane through three matches; false when they are nearly on a line.
bool through(const Match& p, const Match& q, const Match& r, Plane& plane) {
  const double ux = q.x - p.x, uy = q.y - p.y, vx = r.x - p.x, vy = r.y - p.y;
  const double determinant = ux * vy - uy * vx;
  if (std::abs(determinant) < 1000) return false;  // twice the triangle's area, square pixels
  const double du = q.dy - p.dy, dv = r.dy - p.dy;
  plane.b = (du * vy - dv * uy) / determinant;
  plane.c = (dv * ux - du * vx) / determinant;
  plane.a = p.dy - plane.b * p.x - plane.c * p.y;
  return true;
}

bool agrees(const Match& match, const Plane& plane) {
  return std::abs(match.dy - plane.at(match)) < kInlier;
}

std::vector<Match> consistent(const std::vector<Match>& matches, const Plane& plane) {
  std::vector<Match> kept;
  std::copy_if(matches.begin(), matches.end(), std::back_inserter(kept),
               [&](const Match& match) { return agrees(match, plane); });
  return kept;
}

// Least squares; `plane` as it was when the matches lie on a line.
Plane fit(const std::vector<Match>& matches, const Plane& plane) {
  const auto count = static_cast<double>(matches.size());
  double x = 0, y = 0, dy = 0;
  for (const auto& match : matches) x += match.x, y += match.y, dy += match.dy;
  x /= count, y /= count, dy /= count;
  double xx = 0, xy = 0, yy = 0, xd = 0, yd = 0;
  for (const auto& match : matches) {
    const double u = match.x - x, v = match.y - y, d = match.dy - dy;
    xx += u * u, xy += u * v, yy += v * v, xd += u * d, yd += v * d;
  }
  const double determinant = xx * yy - xy * xy;
  if (determinant <= 1e-6 * (xx + yy) * (xx + yy)) return plane;
  Plane fitted;
  fitted.b = (xd * yy - yd * xy) / determinant;
  fitted.c = (yd * xx - xd * xy) / determinant;
  fitted.a = dy - fitted.b * x - fitted.c * y;
  return fitted;
}

// The plane that most matches agree with (repeats exactly: the draws are seeded), then fitted to
// these.
Plane robust_plane(const std::vector<Match>& matches) {
  Rng rng(1);
  auto supporters = [&](const Plane& plane) {
    return std::count_if(matches.begin(), matches.end(),
                         [&](const Match& match) { return agrees(match, plane); });
  };
  Plane best;
  auto most = supporters(best);  // a good pair has no offset at all
  const auto last = static_cast<std::int64_t>(matches.size()) - 1;
  auto draw = [&]() -> const Match& {
    return matches[static_cast<std::size_t>(rng.integer(0, last))];
  };
  for (int round = 0; round < kRounds; ++round) {
    Plane plane;
    const Match &p = draw(), &q = draw(), &r = draw();
    if (!through(p, q, r, plane)) continue;
    if (const auto count = supporters(plane); count > most) {
      most = count;
      best = plane;
    }
  }
  for (int i = 0; i < 3; ++i)
    if (auto kept = consistent(matches, best); kept.size() >= 3) best = fit(kept, best);
  return best;
}

}  // namespace

PairCheck check_pair(const ImageView& left_view, const ImageView& right_view) {
  check(left_view.width == right_view.width && left_view.height == right_view.height,
        ErrorKind::kInput,
        "the left image is {}x{} but the right one is {}x{}; both must have the same size",
        left_view.width, left_view.height, right_view.width, right_view.height);
  const Image left = to_rgb8(left_view, "the left image");
  const Image right = to_rgb8(right_view, "the right image");
  PairCheck result;
  const double scale = std::min(1.0, static_cast<double>(kWorkingWidth) / left.width());
  const Grey small_left = working_grey(left, scale), small_right = working_grey(right, scale);
  if (std::min(small_left.width, small_left.height) < 32) return result;
  std::size_t features = 0;
  const auto all = find_matches(small_left, small_right, features);
  auto check_related = [&](std::size_t matches) {
    result.unrelated = features >= kUnrelatedFeatures && matches < kUnrelatedMatches;
    if (result.unrelated)
      result.warnings.push_back(
          fmt::format("The images seem to show different scenes: only {} of {} corners match. "
                      "Matching needs the left and right image of one scene, taken side by side.",
                      matches, features));
  };
  if (all.size() < kLeastMatches) {
    check_related(all.size());
    return result;
  }
  const Plane plane = robust_plane(all);
  const auto good = consistent(all, plane);
  result.matches = static_cast<int>(good.size());
  result.conclusive =
      good.size() >= kLeastMatches &&
      static_cast<double>(good.size()) >= kLeastShare * static_cast<double>(all.size());
  check_related(good.size());
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
  result.vertical_offset = quantile(dy, 0.5);
  result.horizontal = quantile(dx, 0.5);
  result.negative_share = moved ? static_cast<double>(negative) / moved : 0;
  // Of a linear function over a rectangle around the origin.
  const double w = small_left.width, h = small_left.height;
  const double rms = std::sqrt(plane.a * plane.a + plane.b * plane.b * w * w / 12 +
                               plane.c * plane.c * h * h / 12);
  result.vertical_rms = rms / scale;
  if (!result.conclusive) return result;

  std::vector<PointMatch> points;
  for (const auto& match : good)
    points.push_back({match.x + w / 2, match.y + h / 2, match.dx, match.dy});
  const AlignmentEstimate estimate =
      estimate_alignment(small_left, small_right, points, left.width(), left.height());
  const double estimated = estimate.alignment.vertical_rms(left.width(), left.height());
  result.alignment = estimate.alignment;
  result.alignment_error = estimate.error;
  result.correctable =
      estimate.sure && estimated >= kCorrected && estimated * scale >= kCorrectedWorking;

  result.identical = std::memcmp(left.data(), right.data(),
                                 left.row_bytes() * static_cast<std::size_t>(left.height())) == 0;
  result.swapped = moved >= kLeastMatches / 2 && result.negative_share >= kSwappedShare;
  result.not_rectified = result.vertical_rms > kVerticalLimit && rms > kVerticalWorkingLimit;
  if (result.identical)
    result.warnings.push_back(
        "The two images are identical, so there is no disparity to find. Was the same file given "
        "twice?");
  if (result.swapped)
    result.warnings.push_back(fmt::format(
        "The images look swapped: {:.0f} % of {} matched points are farther right in the right "
        "image (median offset {:.1f} px). Give the left camera's image first.",
        100 * result.negative_share, moved, result.horizontal));
  if (result.not_rectified)
    result.warnings.push_back(fmt::format(
        "The images do not look rectified: matched points differ vertically by {:.1f} px (RMS over "
        "the image; median {:.1f} px, rotation {:.2f} degrees). Matching only searches along rows: "
        "rectify the pair first.",
        result.vertical_rms, result.vertical_offset, std::atan(plane.b) * 180 / std::numbers::pi));
  return result;
}

}  // namespace nmrf
