// nmrf match: stereo pairs in, disparity, pictures, depth and point clouds out.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>
#include <optional>

#include "cli/command.h"
#include "cli/match_settings.h"
#include "cli/models.h"
#include "core/check.h"
#include "core/fields.h"
#include "core/log.h"
#include "core/quantile.h"
#include "data/pair_checks.h"
#include "data/pair_source.h"
#include "io/depth.h"
#include "io/ply.h"
#include "nmrf/image.h"

namespace nmrf::cli {
namespace {

namespace fs = std::filesystem;

// Smallest, median and largest finite value of a map (CV_32FC1); zeros when there is none.
nlohmann::json span_of(const cv::Mat& map) {
  std::vector<float> values;
  values.reserve(map.total());
  for (int y = 0; y < map.rows; ++y)
    for (int x = 0; x < map.cols; ++x)
      if (float v = map.at<float>(y, x); std::isfinite(v)) values.push_back(v);
  if (values.empty()) return {{"min", 0.0}, {"median", 0.0}, {"max", 0.0}};
  const float median = quantile(values, 0.5);
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return {{"min", *least}, {"median", median}, {"max", *most}};
}

// One run of the command: what stays the same from pair to pair.
class Run {
 public:
  // sequence: each pair is much like the one before.
  Run(const MatchSettings& settings, const Matcher& matcher, const OutputNames& names,
      Geometry& geometry, bool sequence)
      : s_(settings),
        matcher_(matcher),
        names_(names),
        geometry_(geometry),
        keep_scale_(sequence && settings.match.scale == 0),
        range_(s_.range) {
    fields_detail::decode("--colormap", s_.colormap, colormap_);
  }

  // Everything that is done for one good pair; returns its report.
  nlohmann::json process(const InputPair& pair);

 private:
  void write_view(const InputPair& pair, const Disparity& result, const std::string& suffix,
                  nlohmann::json& report);
  void write_geometry(const InputPair& pair, const Disparity& result, const std::string& suffix,
                      nlohmann::json& report);
  // The path, noted in the report. Throws Error(kUsage) when it is one of the pair's own images.
  fs::path note(const fs::path& path, const InputPair& pair, nlohmann::json& report) const;

  const MatchSettings& s_;
  const Matcher& matcher_;
  const OutputNames& names_;
  Geometry& geometry_;
  const bool keep_scale_;  // the matcher's choice, from one pair to the next
  double scale_ = 0;       // 0: nothing matched yet
  RangeChooser range_;
  Colormap colormap_ = Colormap::kTurbo;
};

fs::path Run::note(const fs::path& path, const InputPair& pair, nlohmann::json& report) const {
  std::error_code ignored;
  for (const auto& input : {pair.left_name, pair.right_name})
    check(!fs::equivalent(path, input, ignored), ErrorKind::kUsage,
          "{}: is an input; choose another name with -o", path.string());
  report["files"].push_back(path.string());
  return path;
}

nlohmann::json Run::process(const InputPair& pair) {
  nlohmann::json report;
  report["left"] = pair.left_name;
  report["right"] = pair.right_name;
  report["size"] = {pair.left.cols, pair.left.rows};
  // A calibration that does not fit is told before the work.
  if (geometry_.known()) geometry_.of(pair.left.size(), pair.left.size());
  if (!s_.no_checks) {
    PairCheck verdict = check_pair(pair.left, pair.right);
    for (const auto& warning : verdict.warnings) {
      log_warning("{}: {}", pair.stem, warning);
      report["warnings"].push_back(warning);
    }
  }

  const auto start = std::chrono::steady_clock::now();
  auto match = [&](View view) {
    MatchOptions how = s_.match;
    how.view = view;
    if (scale_ > 0) how.scale = scale_, how.full_size = true;
    try {
      return matcher_.match(pair.left, pair.right, how);
    } catch (const Error& error) {  // the matcher knows no file names
      throw Error(error.kind(), pair.left_name + ": " + error.what());
    }
  };
  Disparity left, right;
  if (s_.view != "right" || s_.lr_check) left = match(View::kLeft);
  if (s_.view != "left" || s_.lr_check) right = match(View::kRight);
  if (s_.lr_check) {
    const auto threshold = static_cast<float>(s_.lr_threshold);
    left.occluded = occlusion_mask(left.map, right.map, View::kLeft, threshold);
    right.occluded = occlusion_mask(right.map, left.map, View::kRight, threshold);
  }
  if (keep_scale_) scale_ = matcher_.best_scale(left.map.empty() ? right.map : left.map, scale_);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  report["seconds"] = elapsed.count();

  if (s_.view != "right") write_view(pair, left, "", report);
  if (s_.view != "left") write_view(pair, right, "_right", report);
  return report;
}

void Run::write_view(const InputPair& pair, const Disparity& result, const std::string& suffix,
                     nlohmann::json& report) {
  report["disparity" + suffix] = span_of(result.map);
  write_disparity(note(names_.disparity(pair.stem, suffix), pair, report), result.map);
  auto companion = [&](const std::string& ending) {
    return note(names_.companion(pair.stem, suffix + ending), pair, report);
  };
  if (!s_.no_picture)
    write_image(companion("_vis.png"), colorize(result.map, colormap_, range_.of(result.map)));
  if (s_.confidence) {
    cv::Mat picture;
    result.confidence.convertTo(picture, CV_8U, 255);
    write_image(companion("_confidence_vis.png"), picture);
    write_disparity(companion("_confidence.npy"), result.confidence);
  }
  if (s_.lr_check) {
    write_image(companion("_occluded.png"), result.occluded);
    report["occluded" + suffix] =
        cv::countNonZero(result.occluded) / static_cast<double>(result.occluded.total());
  }
  if (geometry_.known()) write_geometry(pair, result, suffix, report);
}

void Run::write_geometry(const InputPair& pair, const Disparity& result, const std::string& suffix,
                         nlohmann::json& report) {
  const Calibration c = geometry_.of(pair.left.size(), result.map.size());
  const cv::Mat depth = depth_from_disparity(result.map, c);
  const nlohmann::json span = span_of(depth);
  report["depth_m" + suffix] = span;
  report["calibration"] = {{"focal_px", c.fx}, {"baseline_m", c.baseline}, {"doffs_px", c.doffs}};
  log_info(
      "{}{}: f = {:.2f} px, baseline = {:.4f} m, doffs = {:.2f} px (from {}); depth {:.3f} to "
      "{:.3f} m, median {:.3f} m",
      pair.stem, suffix, c.fx, c.baseline, c.doffs, c.source, span["min"].get<double>(),
      span["max"].get<double>(), span["median"].get<double>());
  if (!s_.no_depth)
    write_depth(
        note(names_.companion(pair.stem, suffix + "_depth." + s_.depth_format), pair, report),
        depth);
  if (s_.no_cloud || !suffix.empty()) return;  // one cloud a pair, in the frame of the left camera
  cv::Mat colours = pair.left;
  if (colours.size() != result.map.size())
    cv::resize(pair.left, colours, result.map.size(), 0, 0, cv::INTER_AREA);
  const auto points = point_cloud(result.map, colours, c, result.occluded, s_.cloud);
  write_ply(note(names_.companion(pair.stem, "_cloud.ply"), pair, report), points);
  report["points"] = points.size();
}

// What a person reads of a report.
void print_report(const InputPair& pair, const nlohmann::json& report) {
  const auto& disparity = report[report.contains("disparity") ? "disparity" : "disparity_right"];
  print(fmt::format("{}: {}x{}, {:.2f} s, disparity {:.1f} to {:.1f} px, median {:.1f}", pair.stem,
                    pair.left.cols, pair.left.rows, report["seconds"].get<double>(),
                    disparity["min"].get<double>(), disparity["max"].get<double>(),
                    disparity["median"].get<double>()));
  for (const auto& file : report["files"]) print("  " + file.get<std::string>());
}

}  // namespace

int cmd_match(int argc, char** argv) {
  CLI::App app{
      "Disparity of rectified stereo pairs.\n\n"
      "  nmrf match left.png right.png -o out/\n"
      "  nmrf match left.png right.png -o disparity.pfm\n"
      "  nmrf match left/ right/ -o out/ --calib calib.txt\n"
      "  nmrf match --list pairs.txt -o out/ --lr-check\n"
      "  nmrf match video.mp4 --side-by-side -o out/ --range 0,96\n\n"
      "Disparity is positive, in pixels, of the left image unless --view says otherwise.\n",
      "nmrf match"};
  MatchSettings s;
  s.add_to(app);
  if (int code = parse(app, argc, argv); code >= 0) return code;
  s.common.apply();
  s.validate();
  RangeChooser{s.range};  // a mistake in it is told before anything is read
  Geometry geometry(s);
  if (geometry.known() && s.view == "right" && !s.no_cloud)
    log_warning("--view right: no point cloud is made, it belongs to the left view");
  auto source = open_pairs(s.input);
  const auto total = source->total();
  const bool many = !total || *total != 1;
  OutputNames names(s, many);
  Matcher matcher = Matcher::load(model_path(s.model), s.matcher);
  names.make_ready();
  Run run(s, matcher, names, geometry, source->frame_rate().has_value());

  watch_interrupts();
  ProgressLine progress(many && !s.common.quiet);
  std::vector<std::string> failed;
  InputPair pair;
  std::int64_t done = 0;
  while (!interrupted() && source->next(pair)) {
    progress.show(total ? fmt::format("pair {}/{}  {}", pair.index + 1, *total, pair.stem)
                        : fmt::format("pair {}  {}", pair.index + 1, pair.stem));
    nlohmann::json report;
    try {
      if (pair.error) throw Error(*pair.error);
      report = run.process(pair);
      ++done;
    } catch (const Error& error) {
      if (!many || error.kind() != ErrorKind::kInput) throw;
      progress.clear();
      log_warning("{}", error.what());
      failed.push_back(pair.left_name);
      report = {{"left", pair.left_name}, {"right", pair.right_name}, {"error", error.what()}};
    }
    progress.clear();
    if (s.json)
      print_json(report);
    else if (!report.contains("error"))
      print_report(pair, report);
  }
  if (interrupted()) {
    log_info("interrupted after {} pairs; what was written is complete", done);
    return kExitInterrupted;
  }
  if (failed.empty()) return 0;
  std::string list;
  for (const auto& name : failed) list += "\n  " + name;
  fail(ErrorKind::kInput, "{} of {} pairs failed:{}", failed.size(),
       done + static_cast<std::int64_t>(failed.size()), list);
}

}  // namespace nmrf::cli
