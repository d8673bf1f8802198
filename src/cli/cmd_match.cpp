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
#include "cli/models.h"
#include "core/check.h"
#include "core/fields.h"
#include "core/file.h"
#include "core/log.h"
#include "data/pair_checks.h"
#include "data/pair_source.h"
#include "io/depth.h"
#include "io/ply.h"
#include "nmrf/calibration.h"
#include "nmrf/image.h"
#include "nmrf/matcher.h"
#include "viz/colormap.h"
#include "viz/point_cloud.h"

namespace nmrf::cli {
namespace {

namespace fs = std::filesystem;

struct Settings {
  PairInput input;
  std::string output = "nmrf-out/";
  std::string format, depth_format = "png";
  std::string model;
  MatcherOptions matcher;
  MatchOptions match;
  std::string view = "left";
  bool lr_check = false;
  double lr_threshold = 1;
  bool confidence = false, no_picture = false, no_depth = false, no_cloud = false;
  bool no_checks = false, json = false, strict_range = false;
  std::string colormap = "turbo", range = "first";
  std::string calibration_file;
  Calibration given;  // from --focal and its companions
  std::optional<double> cx, cy;
  PointCloudOptions cloud;
  CommonOptions common;
};

void add_options(CLI::App& app, Settings& s) {
  app.add_option("LEFT", s.input.left,
                 "Left image, folder, 'pattern*' or video (with --side-by-side: both views)");
  app.add_option("RIGHT", s.input.right, "The same for the right view");
  app.add_option("--list", s.input.list, "Text file with a pair a line: left right");
  app.add_option("--root", s.input.root, "Folder that paths of the list are relative to");
  app.add_flag("--side-by-side", s.input.side_by_side, "LEFT holds both views beside each other");

  app.add_option("-o,--output", s.output, "Folder (ends in / or exists), or one file")
      ->capture_default_str()
      ->group("Output");
  app.add_option("--format", s.format, "Disparity: pfm, png (16-bit, x256), npy, tiff [pfm]")
      ->check(CLI::IsMember({"pfm", "png", "npy", "tiff"}))
      ->group("Output");
  app.add_option("--view", s.view, "left, right or both")
      ->check(CLI::IsMember({"left", "right", "both"}))
      ->capture_default_str()
      ->group("Output");
  app.add_flag("--confidence", s.confidence, "Also the winner's probability (8-bit PNG and npy)")
      ->group("Output");
  app.add_flag("--lr-check", s.lr_check, "Also a mask of occluded pixels; twice the time")
      ->group("Output");
  app.add_option("--lr-threshold", s.lr_threshold, "Pixels of disagreement allowed")
      ->capture_default_str()
      ->group("Output");
  app.add_flag("--no-picture", s.no_picture, "No colour picture")->group("Output");
  app.add_option("--colormap", s.colormap, "turbo, inferno, jet or kitti")
      ->check(CLI::IsMember({"turbo", "inferno", "jet", "kitti"}))
      ->capture_default_str()
      ->group("Output");
  app.add_option("--range", s.range,
                 "Disparities of the colours: LO,HI; or 'first' (from the first pair, kept for "
                 "all), or 'each'")
      ->capture_default_str()
      ->group("Output");
  app.add_flag("--json", s.json, "One JSON line a pair on stdout")->group("Output");

  app.add_option("-m,--model", s.model, "Model file (.safetensors or the authors' .pth)")
      ->group("Matching");
  app.add_option("--device", s.matcher.device, "auto, cpu, cuda or cuda:N")
      ->capture_default_str()
      ->group("Matching");
  app.add_option("--max-disp", s.matcher.max_disp, "Largest disparity, pixels (0: the model's)")
      ->check(CLI::Range(0, 16384))
      ->group("Matching");
  app.add_option("--scale", s.match.scale, "Resize the images first; intrinsics are scaled along")
      ->check(CLI::Range(0.02, 16.0))
      ->group("Matching");
  app.add_flag("--full-size", s.match.full_size, "With --scale: results at the original size")
      ->group("Matching");
  app.add_flag("--no-checks", s.no_checks, "Skip the check for swapped or unrectified images")
      ->group("Matching");

  app.add_option("--calib", s.calibration_file,
                 "Calibration: Middlebury calib.txt, KITTI, OpenCV yml/xml, K.txt, stereodemo json")
      ->group("Depth and point cloud");
  app.add_option("--focal", s.given.fx, "Instead of --calib: focal length, pixels")
      ->group("Depth and point cloud");
  app.add_option("--baseline", s.given.baseline, "and baseline, metres")
      ->group("Depth and point cloud");
  app.add_option("--doffs", s.given.doffs, "cx of the right minus cx of the left camera, pixels")
      ->group("Depth and point cloud");
  app.add_option("--cx", s.cx, "principal point [image centre]")->group("Depth and point cloud");
  app.add_option("--cy", s.cy, "principal point [image centre]")->group("Depth and point cloud");
  app.add_option("--depth-format", s.depth_format, "png (16-bit mm), npy, tiff or pfm (metres)")
      ->check(CLI::IsMember({"png", "npy", "tiff", "pfm"}))
      ->capture_default_str()
      ->group("Depth and point cloud");
  app.add_flag("--no-depth", s.no_depth, "No depth map")->group("Depth and point cloud");
  app.add_flag("--no-cloud", s.no_cloud, "No point cloud")->group("Depth and point cloud");
  app.add_option("--z-near", s.cloud.z_near, "Drop nearer points, metres")
      ->group("Depth and point cloud");
  app.add_option("--z-far", s.cloud.z_far, "Drop farther points, metres")
      ->group("Depth and point cloud");
  app.add_option("--edge", s.cloud.edge_threshold,
                 "Drop points at disparity steps above this many pixels (0: keep)")
      ->group("Depth and point cloud");
  app.add_option("--stride", s.cloud.stride, "Every n-th pixel of every n-th row")
      ->group("Depth and point cloud");
  s.common.add_to(app);
}

// Where the results of a pair go.
class Outputs {
 public:
  Outputs(const std::string& wish, const std::string& format, bool many) {
    fs::path path(wish);
    const std::string extension = path.extension().string();
    const bool folder = wish.back() == '/' || fs::is_directory(path) || extension.empty();
    if (folder) {
      folder_ = path;
      extension_ = "." + (format.empty() ? std::string("pfm") : format);
    } else {
      check(is_disparity_extension(extension), ErrorKind::kUsage,
            "-o {}: no disparity format is called '{}'; expected .pfm, .png, .npy, .tiff, or a "
            "folder (end it with /)",
            wish, extension);
      check(format.empty() || "." + format == extension ||
                (format == "tiff" && extension == ".tif"),
            ErrorKind::kUsage, "-o {} contradicts --format {}", wish, format);
      check(!many, ErrorKind::kUsage, "-o {}: several pairs need a folder (end it with /)", wish);
      single_ = path;
      folder_ = path.parent_path();
      extension_ = extension;
    }
    if (!folder_.empty()) make_folder(folder_);
  }

  // `what` is "" for the left view's disparity, else a suffix such as "_right".
  fs::path disparity(const std::string& stem, const std::string& view) const {
    if (single_ && view.empty()) return *single_;
    return companion(stem, view + (single_ ? "" : "_disparity") + extension_);
  }
  fs::path companion(const std::string& stem, const std::string& suffix) const {
    return folder_ / ((single_ ? single_->stem().string() : stem) + suffix);
  }

 private:
  std::optional<fs::path> single_;
  fs::path folder_;
  std::string extension_;
};

// The colour range over the run: given, from the first pair, or each pair's own.
class Range {
 public:
  explicit Range(const std::string& wish) : each_(wish == "each") {
    if (wish == "each" || wish == "first") return;
    ColorRange given;
    char rest = 0;
    check(std::sscanf(wish.c_str(), "%f,%f%c", &given.lo, &given.hi, &rest) == 2 &&
              given.hi > given.lo,
          ErrorKind::kUsage, "--range {}: expected LO,HI such as 0,96, or first, or each", wish);
    range_ = given;
  }
  ColorRange of(const cv::Mat& disparity) {
    if (each_) return robust_range(disparity);
    if (!range_) range_ = robust_range(disparity);
    return *range_;
  }

 private:
  bool each_;
  std::optional<ColorRange> range_;
};

std::optional<Calibration> calibration_of(const Settings& s) {
  const bool by_hand = s.given.fx != 0 || s.given.baseline != 0;
  if (s.calibration_file.empty() && !by_hand) return std::nullopt;
  check(s.calibration_file.empty() || !by_hand, ErrorKind::kUsage,
        "--calib and --focal/--baseline exclude each other");
  if (!by_hand) return read_calibration(s.calibration_file);
  check(s.given.fx > 0 && s.given.baseline > 0, ErrorKind::kUsage,
        "depth needs both --focal (pixels) and --baseline (metres)");
  Calibration calibration = s.given;
  calibration.fy = calibration.fx;
  calibration.source = "the command line";
  return calibration;
}

// The calibration of the matched images, which are `size` after scaling `original`.
Calibration fitted(Calibration c, const Settings& s, cv::Size original, cv::Size size) {
  if (c.width > 0 && c.height > 0 && c.width != original.width) {
    log_warning("the calibration holds for {}x{} images, these are {}x{}: scaling it", c.width,
                c.height, original.width, original.height);
    c = c.scaled(static_cast<double>(original.width) / c.width,
                 static_cast<double>(original.height) / c.height);
  }
  if (s.calibration_file.empty()) {
    c.cx = s.cx.value_or((original.width - 1) / 2.0);
    c.cy = s.cy.value_or((original.height - 1) / 2.0);
  }
  c = c.scaled(static_cast<double>(size.width) / original.width,
               static_cast<double>(size.height) / original.height);
  c.validate();
  return c;
}

struct Span {
  double lo = 0, median = 0, hi = 0;
};

// Smallest, median and largest finite value.
Span span_of(const cv::Mat& map) {
  std::vector<float> values;
  values.reserve(map.total());
  for (int y = 0; y < map.rows; ++y)
    for (int x = 0; x < map.cols; ++x)
      if (float v = map.at<float>(y, x); std::isfinite(v)) values.push_back(v);
  if (values.empty()) return {};
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  Span span;
  span.median = *middle;
  span.lo = *std::min_element(values.begin(), values.end());
  span.hi = *std::max_element(values.begin(), values.end());
  return span;
}

// Everything that is done for one good pair; returns its report.
nlohmann::json process(const Settings& s, const Matcher& matcher, const Outputs& outputs,
                       const std::optional<Calibration>& calibration, Range& range,
                       const InputPair& pair) {
  nlohmann::json report;
  report["left"] = pair.left_name;
  report["right"] = pair.right_name;
  report["size"] = {pair.left.cols, pair.left.rows};
  if (!s.no_checks) {
    PairCheck verdict = check_pair(pair.left, pair.right);
    for (const auto& warning : verdict.warnings) {
      log_warning("{}: {}", pair.stem, warning);
      report["warnings"].push_back(warning);
    }
  }

  const auto start = std::chrono::steady_clock::now();
  const bool need_left = s.view != "right" || s.lr_check, need_right = s.view != "left" || s.lr_check;
  MatchOptions how = s.match;
  Disparity left, right;
  if (need_left) left = matcher.match(pair.left, pair.right, how);
  if (need_right) {
    how.view = View::kRight;
    right = matcher.match(pair.left, pair.right, how);
  }
  if (s.lr_check) {
    const auto threshold = static_cast<float>(s.lr_threshold);
    left.occluded = occlusion_mask(left.map, right.map, View::kLeft, threshold);
    right.occluded = occlusion_mask(right.map, left.map, View::kRight, threshold);
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  report["seconds"] = elapsed.count();

  std::vector<std::string> written;
  auto note = [&](const fs::path& path) {
    written.push_back(path.string());
    return path;
  };
  auto write_view = [&](const Disparity& result, const std::string& suffix) {
    const Span span = span_of(result.map);
    const std::string key = suffix.empty() ? "disparity" : "disparity_right";
    report[key] = {{"min", span.lo}, {"median", span.median}, {"max", span.hi}};
    write_disparity(note(outputs.disparity(pair.stem, suffix)), result.map);
    if (!s.no_picture) {
      Colormap map = Colormap::kTurbo;
      fields_detail::decode("--colormap", s.colormap, map);
      write_image(note(outputs.companion(pair.stem, suffix + "_vis.png")),
                  colorize(result.map, map, range.of(result.map)));
    }
    if (s.confidence) {
      cv::Mat picture;
      result.confidence.convertTo(picture, CV_8U, 255);
      write_image(note(outputs.companion(pair.stem, suffix + "_confidence_vis.png")), picture);
      write_disparity(note(outputs.companion(pair.stem, suffix + "_confidence.npy")),
                      result.confidence);
    }
    if (s.lr_check) {
      write_image(note(outputs.companion(pair.stem, suffix + "_occluded.png")), result.occluded);
      report[suffix.empty() ? "occluded" : "occluded_right"] =
          cv::countNonZero(result.occluded) / static_cast<double>(result.occluded.total());
    }
  };
  if (s.view != "right") write_view(left, "");
  if (s.view != "left") write_view(right, "_right");

  if (calibration && s.view != "right") {
    const Calibration c = fitted(*calibration, s, pair.left.size(), left.map.size());
    cv::Mat depth = depth_from_disparity(left.map, c);
    const Span span = span_of(depth);
    report["depth_m"] = {{"min", span.lo}, {"median", span.median}, {"max", span.hi}};
    report["calibration"] = {{"focal_px", c.fx}, {"baseline_m", c.baseline}, {"doffs_px", c.doffs}};
    log_info("{}: f = {:.2f} px, baseline = {:.4f} m, doffs = {:.2f} px (from {}); depth {:.3f} to "
             "{:.3f} m, median {:.3f} m",
             pair.stem, c.fx, c.baseline, c.doffs, c.source, span.lo, span.hi, span.median);
    if (!s.no_depth)
      write_depth(note(outputs.companion(pair.stem, "_depth." + s.depth_format)), depth);
    if (!s.no_cloud) {
      cv::Mat colours = pair.left;
      if (colours.size() != left.map.size())
        cv::resize(pair.left, colours, left.map.size(), 0, 0, cv::INTER_AREA);
      auto points = point_cloud(left.map, colours, c, left.occluded, s.cloud);
      write_ply(note(outputs.companion(pair.stem, "_cloud.ply")), points);
      report["points"] = points.size();
    }
  }
  report["files"] = written;
  return report;
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
  Settings s;
  add_options(app, s);
  if (int code = parse(app, argc, argv); code >= 0) return code;
  s.common.apply();
  s.cloud.validate();
  Range range(s.range);
  const auto calibration = calibration_of(s);
  auto source = open_pairs(s.input);
  const auto total = source->total();
  const bool many = !total || *total != 1;
  Outputs outputs(s.output, s.format, many);
  Matcher matcher = Matcher::load(model_path(s.model), s.matcher);

  watch_interrupts();
  ProgressLine progress(many && !s.common.quiet);
  std::vector<std::string> failed;
  std::optional<Error> first_failure;
  InputPair pair;
  std::int64_t done = 0;
  while (!interrupted() && source->next(pair)) {
    progress.show(total ? fmt::format("pair {}/{}  {}", pair.index + 1, *total, pair.stem)
                        : fmt::format("pair {}  {}", pair.index + 1, pair.stem));
    nlohmann::json report;
    try {
      if (pair.error) throw Error(*pair.error);
      report = process(s, matcher, outputs, calibration, range, pair);
      ++done;
    } catch (const Error& error) {
      if (!many) throw;
      if (error.kind() != ErrorKind::kInput) throw;
      progress.clear();
      log_warning("{}", error.what());
      failed.push_back(pair.left_name);
      report = {{"left", pair.left_name}, {"right", pair.right_name}, {"error", error.what()}};
    }
    progress.clear();
    if (s.json) {
      print(report.dump());
    } else if (!report.contains("error")) {
      const auto& disparity = report.contains("disparity") ? report["disparity"] : report["disparity_right"];
      print(fmt::format("{}: {}x{}, {:.2f} s, disparity {:.1f} to {:.1f} px, median {:.1f}",
                        pair.stem, pair.left.cols, pair.left.rows, report["seconds"].get<double>(),
                        disparity["min"].get<double>(), disparity["max"].get<double>(),
                        disparity["median"].get<double>()));
      for (const auto& file : report["files"]) print("  " + file.get<std::string>());
    }
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
