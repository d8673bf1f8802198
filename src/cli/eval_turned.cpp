#include "cli/eval_turned.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>
#include <opencv2/calib3d.hpp>

#include "cli/command.h"
#include "cli/rectify_choice.h"
#include "core/check.h"
#include "core/file.h"
#include "core/rng.h"
#include "eval/summary.h"
#include "nmrf/alignment.h"
#include "nmrf/checks.h"
#include "nmrf/opencv.h"
#include "rig/feature_rectifier.h"

namespace nmrf::cli {
namespace {

constexpr double kGreatest = 100;  // px: a greater error counts as this

cv::Point2d through(const cv::Matx33d& h, const cv::Point2d& p) {
  const cv::Vec3d q = h * cv::Vec3d(p.x, p.y, 1);
  return {q[0] / q[2], q[1] / q[2]};
}

std::array<double, 9> numbers(const cv::Matx33d& m) {
  std::array<double, 9> result;
  std::copy_n(m.val, 9, result.begin());
  return result;
}

// What a camera sees after it was turned: its focal length is taken as the width of the image. A
// rectified pair is that of two such cameras whatever their true focal length, in a scene that is
// stretched along the viewing direction.
cv::Matx33d turned(Rng& rng, double degrees, int width, int height) {
  const double most = degrees * std::numbers::pi / 180;
  cv::Vec3d turn;
  for (int i = 0; i < 3; ++i) turn[i] = rng.uniform(-most, most);
  cv::Matx33d rotation;
  cv::Rodrigues(turn, rotation);
  const cv::Matx33d camera(width, 0, (width - 1) / 2.0, 0, width, (height - 1) / 2.0, 0, 0, 1);
  return camera * rotation * camera.inv();
}

cv::Matx33d moved(double x, double y) { return {1, 0, x, 0, 1, y, 0, 0, 1}; }

// From pixels of the pair as it was to those of the images that are matched.
struct PairView {
  Image left, right;
  cv::Matx33d to_left, to_right;
  Alignment alignment;  // of the right image, after to_right

  cv::Point2d before_alignment(const cv::Point2d& p) const {
    const double x = p.x - (right.width() - 1) / 2.0, y = p.y - (right.height() - 1) / 2.0;
    return {p.x - alignment.turn * y + alignment.scale * x,
            p.y + alignment.offset + alignment.turn * x + alignment.scale * y +
                alignment.keystone * x * y};
  }
};

void warp_both(PairView& view, const cv::Matx33d& left, const cv::Matx33d& right, int width,
               int height) {
  view.left = warp(view.left, numbers(left), width, height);
  view.right = warp(view.right, numbers(right), width, height);
  view.to_left = left * view.to_left;
  view.to_right = right * view.to_right;
}

// Both cameras turned; the images are cut to what a turned camera would show without black borders.
PairView turn_cameras(const PairView& as_given, double degrees, std::uint64_t seed) {
  Rng rng(seed);
  PairView view = as_given;
  const int width = view.left.width(), height = view.left.height();
  const cv::Matx33d left = turned(rng, degrees, width, height),
                    right = turned(rng, degrees, width, height);
  const ImageFrame shown = common_frame(numbers(left), numbers(right), width, height);
  const cv::Matx33d cut = moved(-shown.x, -shown.y);
  warp_both(view, cut * left, cut * right, shown.width, shown.height);
  return view;
}

// As `nmrf match --rectify auto` does. Returns the matches it rests on, 0 when small corrections
// were enough. Throws Error(kInput) where it refuses.
int rectify(PairView& view) {
  int matches = 0;
  PairCheck verdict = check_pair(view.left, view.right);
  if (wants_features(verdict)) {
    try {
      const FeatureRectification found = rectify_by_features(view.left, view.right);
      warp_both(view, cv::Matx33d(found.left.data()), cv::Matx33d(found.right.data()), found.width,
                found.height);
      matches = found.matches;
      verdict = check_pair(view.left, view.right);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kInput || !small_correction_does(verdict)) throw;
    }
  }
  if (verdict.correctable) {
    view.alignment = verdict.alignment;
    view.right = aligned(view.right, view.alignment);
  }
  return matches;
}

struct Errors {
  double pixels = 0, error = 0, bad1 = 0, bad2 = 0, bad3 = 0, d1 = 0;
  void add(double found, double truth) {
    const double off =
        std::isfinite(found) ? std::min(std::abs(found - truth), kGreatest) : kGreatest;
    ++pixels;
    error += off;
    bad1 += off > 1;
    bad2 += off > 2;
    bad3 += off > 3;
    d1 += off > 3 && off > 0.05 * truth;
  }
  static constexpr std::array<const char*, 5> kNames{"epe", "bad1", "bad2", "bad3", "d1"};
  std::array<double, 5> values() const {
    const double n = std::max(pixels, 1.0);
    return {error / n, 100 * bad1 / n, 100 * bad2 / n, 100 * bad3 / n, 100 * d1 / n};
  }
};

// The disparity that a map of the view gives to a pixel of the left image as it was.
double disparity_of(const PairView& view, const FloatMap& map, const cv::Matx33d& from_right,
                    const cv::Point2d& p) {
  const cv::Point2d q = through(view.to_left, p);
  const int x = static_cast<int>(std::lround(q.x)), y = static_cast<int>(std::lround(q.y));
  const cv::Point2d match = view.before_alignment({q.x - map.at(y, x), q.y});
  return p.x - through(from_right, match).x;
}

// The truth of a pixel, on which all ways of matching are compared.
struct Truth {
  cv::Point2d place;
  double disparity;
};

// Pixels whose point both rectified images show. vertical: by how many pixels the rows of the two
// truly differ, root mean square.
std::vector<Truth> common_pixels(const PairView& view, const cv::Mat& truth, double greatest,
                                 double& vertical) {
  std::vector<Truth> result;
  double sum = 0;
  auto inside = [](const cv::Point2d& p, const Image& image) {
    return p.x >= 0 && p.y >= 0 && p.x <= image.width() - 1 && p.y <= image.height() - 1;
  };
  for (int y = 0; y < truth.rows; ++y)
    for (int x = 0; x < truth.cols; ++x) {
      const double disparity = truth.at<float>(y, x);
      if (!std::isfinite(disparity) || (greatest > 0 && disparity >= greatest)) continue;
      const cv::Point2d p(x, y), a = through(view.to_left, p),
                                 b = through(view.to_right, {x - disparity, p.y});
      if (!inside(a, view.left) || !inside(b, view.right)) continue;
      // Where the aligned right image shows b, to first order.
      const cv::Point2d off = view.before_alignment(b) - b;
      sum += (a.y - b.y + off.y) * (a.y - b.y + off.y);
      result.push_back({p, disparity});
    }
  vertical = result.empty() ? 0 : std::sqrt(sum / static_cast<double>(result.size()));
  return result;
}

constexpr std::array<const char*, 3> kWays{"as they were", "turned, and back by the known turns",
                                           "turned, --rectify auto"};

struct SetFigures {
  std::size_t pairs = 0, rectified = 0, small = 0;
  std::array<std::array<double, 5>, kWays.size()> sums{};  // of the pairs' own values
  double before = 0, vertical = 0, worst = 0, shown = 0;
  std::map<std::string, int> refused;  // by reason
  nlohmann::json each = nlohmann::json::array();
};

// What refusals for one reason have in common: the first clause, without its numbers.
std::string reason_of(const std::string& message) {
  const std::string text = message.substr(message.find(": ") + 2);
  std::string reason;
  for (char c : text.substr(0, text.find_first_of(",.("))) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) reason += c;
    if (digit && !reason.ends_with('N')) reason += 'N';
  }
  return reason;
}

void measure(const TurnedSettings& s, const Matcher& matcher, const Sample& sample,
             std::uint64_t seed, double greatest, SetFigures& figures) {
  MatchOptions how;
  how.scale = s.scale;
  how.full_size = true;
  how.align = false;
  PairView given;
  given.left = to_rgb8(view(sample.left));
  given.right = to_rgb8(view(sample.right));
  given.to_left = given.to_right = cv::Matx33d::eye();
  const PairView seen = turn_cameras(given, s.degrees, seed);
  PairView found = seen;
  ++figures.pairs;
  nlohmann::json report{{"name", sample.name}};
  try {
    const int matches = rectify(found);
    figures.small += matches == 0;
    report["matches"] = matches;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInput) throw;
    ++figures.refused[reason_of(error.what())];
    report["refused"] = error.what();
    figures.each.push_back(report);
    return;
  }
  double before = 0, vertical = 0;
  common_pixels(seen, sample.disparity, greatest, before);
  const auto pixels = common_pixels(found, sample.disparity, greatest, vertical);
  PairView back = seen;
  warp_both(back, seen.to_left.inv(), seen.to_right.inv(), given.left.width(), given.left.height());
  const PairView* views[] = {&given, &back, &found};
  for (std::size_t way = 0; way < kWays.size(); ++way) {
    const PairView& view = *views[way];
    const Disparity result = matcher.match(view.left, view.right, how);
    const cv::Matx33d from_right = view.to_right.inv();
    Errors errors;
    for (const Truth& truth : pixels)
      errors.add(disparity_of(view, result.map, from_right, truth.place), truth.disparity);
    const auto values = errors.values();
    for (std::size_t i = 0; i < values.size(); ++i) {
      figures.sums[way][i] += values[i];
      report["errors"][kWays[way]][Errors::kNames[i]] = values[i];
    }
  }
  const double shown = static_cast<double>(found.left.width()) * found.left.height() /
                       (static_cast<double>(given.left.width()) * given.left.height());
  report.update({{"vertical_before_px", before}, {"vertical_px", vertical}, {"shown", shown}});
  figures.each.push_back(report);
  ++figures.rectified;
  figures.before += before;
  figures.vertical += vertical;
  figures.worst = std::max(figures.worst, vertical);
  figures.shown += shown;
}

std::string table(const EvalSet& set, const SetFigures& f) {
  const double n = std::max<double>(1, static_cast<double>(f.rectified));
  std::vector<std::vector<std::string>> cells{
      {"pairs", "EPE, px", "bad 1, %", "bad 2, %", "bad 3, %", "D1, %"}};
  for (std::size_t way = 0; way < kWays.size(); ++way) {
    std::vector<std::string> row{kWays[way]};
    for (double sum : f.sums[way]) row.push_back(fmt::format("{:.2f}", sum / n));
    cells.push_back(row);
  }
  std::string text = fmt::format(
      "{}: {} of {} pairs rectified ({} of them by a small correction, or fit); rows differed by "
      "{:.1f} px and\n  differ by {:.2f} px, in the worst pair by {:.2f} px; {:.0f} % of the "
      "images "
      "are left\n{}",
      set.label, f.rectified, f.pairs, f.small, f.before / n, f.vertical / n, f.worst,
      100 * f.shown / n, text_table(cells, 1));
  for (const auto& [reason, count] : f.refused)
    text += fmt::format("refused {} times: {}\n", count, reason);
  return text;
}

constexpr const char* kMeaning =
    "Means of the pairs' own values, each over the pixels with truth whose point both rectified "
    "images show,\n"
    "  in pixels of the pair as it was; errors above 100 px count as 100. Rows: by the truth, root "
    "mean square.";

}  // namespace

int run_turned(const TurnedSettings& s) {
  check(s.degrees > 0 && s.degrees <= 20, ErrorKind::kUsage,
        "cameras turned by {} degrees; expected up to 20", s.degrees);
  const Matcher matcher = Matcher::load(s.model, s.matcher);
  watch_interrupts();
  ProgressLine progress(!s.quiet);
  nlohmann::json report = nlohmann::json::array();
  std::string text;
  for (const EvalSet& set : s.sets) {
    SetFigures figures;
    const bool whole = each_image(s, set, progress, [&](const Sample& sample, std::size_t i) {
      measure(s, matcher, sample, mix_seed({s.seed, i}), set.protocol.metrics.max_disparity,
              figures);
    });
    if (!whole) return kExitInterrupted;
    text += table(set, figures) + "\n";
    report.push_back(
        {{"set", set.label}, {"degrees", s.degrees}, {"seed", s.seed}, {"pairs", figures.each}});
  }
  print_study(s, text + kMeaning, report);
  return 0;
}

}  // namespace nmrf::cli
