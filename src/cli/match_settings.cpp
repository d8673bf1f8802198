#include "cli/match_settings.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "cli/validators.h"
#include "core/check.h"
#include "core/file.h"
#include "core/log.h"
#include "nmrf/files.h"

namespace nmrf::cli {
namespace fs = std::filesystem;

void MatchSettings::add_to(CLI::App& app) {
  add_pair_input(app, input);
  app.add_option("--camera", input.camera,
                 "Match live frames of this camera (number or address), which hold both views (see "
                 "--layout)");
  app.add_option("--frames", frames, "Stop after this many frames of a video or camera")
      ->check(positive());

  constexpr const char* kOutput = "Output";
  app.add_option("-o,--output", output, "Folder (ends in / or exists), or a single file")
      ->capture_default_str()
      ->group(kOutput);
  app.add_option("--format", format, "Disparity: pfm, png (16-bit, x256), npy, tiff [pfm]")
      ->check(CLI::IsMember({"pfm", "png", "npy", "tiff"}))
      ->group(kOutput);
  app.add_option("--view", view, "left, right or both")
      ->check(CLI::IsMember({"left", "right", "both"}))
      ->capture_default_str()
      ->group(kOutput);
  app.add_flag("--confidence", confidence,
               "Also write the probability that the error is at most 1 px and, with a calibration, "
               "the expected depth error")
      ->group(kOutput);
  app.add_flag(
         "--lr-check", lr_check,
         "Left-right consistency check: also write a mask of occluded pixels; takes twice as long")
      ->group(kOutput);
  app.add_flag("--mask", mask,
               "Also write a mask: the sum of 1 occluded, 2 out of view, 4 filled in")
      ->group(kOutput);
  app.add_option("--lr-threshold", lr_threshold, "Largest left-right difference allowed, pixels")
      ->capture_default_str()
      ->group(kOutput);
  app.add_flag("--no-picture", no_picture, "Write no colour picture")->group(kOutput);
  app.add_option("--colormap", colormap, "turbo, inferno, jet or kitti")
      ->check(CLI::IsMember({"turbo", "inferno", "jet", "kitti"}))
      ->capture_default_str()
      ->group(kOutput);
  app.add_option("--range", range,
                 "Disparity range of the colours: LO,HI; first (taken from the first pair, used "
                 "for all) or each (per pair)")
      ->capture_default_str()
      ->group(kOutput);
  app.add_option(
         "--truth", truth_file,
         "True disparity of the left image: print the error and write an error map (one pair only)")
      ->group(kOutput);
  app.add_flag("--page", page, "Also write an HTML page with photo, map, confidence and 3-D cloud")
      ->group(kOutput);
  app.add_flag("--no-frames", no_frames, "Of a video, write only the disparity video")
      ->group(kOutput);
  app.add_flag("--window,!--no-window", window,
               "Show photo and map of a video during matching; q ends [for cameras, if there is a "
               "display]")
      ->group(kOutput);
  app.add_flag("--json", json, "Print one JSON object per pair")->group(kOutput);

  constexpr const char* kMatching = "Matching";
  app.add_option("-m,--model", model,
                 "Model file: .safetensors, or .pth from the authors [bundled model]")
      ->group(kMatching);
  add_device(app, matcher.device)->group(kMatching);
  add_max_disp(app, matcher.max_disp)->group(kMatching);
  app.add_option("--min-disp", match.min_disp,
                 "Smallest disparity to search, in pixels of the input images; may be negative [0]")
      ->check(CLI::Range(-16384, 16384))
      ->group(kMatching);
  add_precision(app, matcher.precision)->group(kMatching);
  add_scale(app, match.scale,
            "Resize images and calibration by this factor before matching; 1: as they are; auto: "
            "the model's best scale, results at the original size")
      ->group(kMatching);
  app.add_option("--memory", memory,
                 "Memory limit, e.g. 2G; larger pairs are matched in overlapping tiles")
      ->transform(CLI::AsSizeValue(false))
      ->group(kMatching);
  app.add_flag("--full-size", match.full_size,
               "With --scale FACTOR: write results at the original size")
      ->group(kMatching);
  app.add_option("--set", matcher.set, "Change a model option, e.g. match.median=0; repeatable")
      ->allow_extra_args(false)
      ->group(kMatching);
  app.add_option("--rectify", rectify.wish,
                 "small: correct small vertical misalignment; off; auto: also rectify from image "
                 "features; or a stereo calibration: FILE or FILE,FILE")
      ->capture_default_str()
      ->group(kMatching);
  rectify.add_to(app, kMatching);
  app.add_flag("--no-checks", no_checks,
               "Do not check for swapped or unrectified images, and correct nothing")
      ->group(kMatching);

  constexpr const char* kDepth = "Depth and point cloud";
  app.add_option("--calib", calibration_file,
                 "Calibration: Middlebury calib.txt, KITTI, OpenCV yml/xml, K.txt, stereodemo json")
      ->group(kDepth);
  app.add_option("--focal", focal, "Instead of --calib: focal length, pixels [EXIF]")
      ->group(kDepth);
  app.add_option("--baseline", baseline, "With --focal: distance between the cameras, metres")
      ->group(kDepth);
  app.add_option("--doffs", doffs, "cx of the right camera minus cx of the left, pixels [0]")
      ->group(kDepth);
  app.add_option("--cx", cx, "Principal point, pixels [image centre]")->group(kDepth);
  app.add_option("--cy", cy, "Principal point, pixels [image centre]")->group(kDepth);
  app.add_option("--depth-format", depth_format,
                 "png (16-bit millimetres), or npy, tiff, pfm (metres)")
      ->check(CLI::IsMember({"png", "npy", "tiff", "pfm"}))
      ->capture_default_str()
      ->group(kDepth);
  app.add_flag("--no-depth", no_depth, "Write no depth map")->group(kDepth);
  app.add_flag("--no-cloud", no_cloud, "Write no point cloud")->group(kDepth);
  app.add_flag("--keep-filled", keep_filled,
               "Keep depth and points where the disparity was filled in")
      ->group(kDepth);
  exports.add_to(app, kDepth);
  common.add_to(app);
}

void MatchSettings::complete() {
  matcher.threads = common.thread_count();
  if (memory) match.memory = *memory;
  exports.cloud.filled = keep_filled;
  rectify.negative = match.min_disp < 0;
  exports.cloud.occluded = !lr_check;  // without the check only filling tells
}

void MatchSettings::validate() const {
  check(!output.empty(), ErrorKind::kUsage, "-o is empty; expected a folder or a file");
  check(lr_threshold >= 0 && std::isfinite(lr_threshold), ErrorKind::kUsage,
        "--lr-threshold {}: expected pixels, 0 or more", lr_threshold);
  exports.validate();
  check(truth_file.empty() || view != "right", ErrorKind::kUsage,
        "--truth belongs to the left view, which --view right does not make");
  check(exports.formats.empty() || by_calibration(), ErrorKind::kUsage,
        "--export needs depth: give --calib FILE, or --focal and --baseline");
  const bool by_hand = focal || baseline || doffs || cx || cy;
  check(calibration_file.empty() || !by_hand, ErrorKind::kUsage,
        "give either --calib or --focal, --baseline, --doffs, --cx and --cy, not both");
  check(!rectify.by_calibration() || (calibration_file.empty() && !by_hand), ErrorKind::kUsage,
        "--rectify {} already supplies the calibration; drop --calib, --focal and --baseline",
        rectify.wish);
  rectify.validate();
  if (by_hand)
    check(
        focal.value_or(1) > 0 && baseline.value_or(0) > 0, ErrorKind::kUsage,
        "depth needs a positive --focal (pixels; or EXIF data) and a positive --baseline (metres)");
}

OutputNames::OutputNames(const MatchSettings& settings, bool many) {
  const std::string& wish = settings.output;
  const std::string& format = settings.format;
  const fs::path path(wish);
  const std::string extension = path.extension().string();
  auto check_format = [&](const std::string& name) {
    check(settings.match.min_disp >= 0 || name != ".png", ErrorKind::kUsage,
          "16-bit PNG files cannot hold the negative disparities of --min-disp {}; write pfm, npy "
          "or tiff",
          settings.match.min_disp);
  };
  std::error_code ignored;
  if (wish.back() == '/' || fs::is_directory(path, ignored) || extension.empty()) {
    folder_ = path;
    extension_ = "." + (format.empty() ? std::string("pfm") : format);
    check_format(extension_);
  } else {
    check(is_disparity_extension(extension), ErrorKind::kUsage,
          "-o {}: unknown disparity format '{}'; expected .pfm, .png, .npy or .tiff, or a folder "
          "(end it with /)",
          wish, extension);
    check(format.empty() || "." + format == extension || (format == "tiff" && extension == ".tif"),
          ErrorKind::kUsage, "-o {} contradicts --format {}", wish, format);
    check(!many, ErrorKind::kUsage, "-o {}: several pairs need a folder (end it with /)", wish);
    single_ = path;
    check_format(extension);
    single_view_ = settings.view == "right" ? "_right" : "";
    folder_ = path.parent_path();
    extension_ = extension;
  }
}

void OutputNames::make_ready() const {
  if (!folder_.empty()) make_folder(folder_);
  // Before minutes of matching rather than after.
  const std::string folder = folder_.empty() ? "." : folder_.string();
  check(::access(folder.c_str(), W_OK | X_OK) == 0, ErrorKind::kFailure,
        "{}: no permission to write into this folder; choose another with -o", folder);
}

fs::path OutputNames::disparity(const std::string& stem, const std::string& view) const {
  if (single_ && view == single_view_) return *single_;
  return companion(stem, view + (single_ ? "" : "_disparity") + extension_);
}

fs::path OutputNames::companion(const std::string& stem, const std::string& suffix) const {
  return folder_ / ((single_ ? single_->stem().string() : stem) + suffix);
}

RangeChooser::RangeChooser(const std::string& wish) : each_(wish == "each") {
  if (wish == "each" || wish == "first") return;
  ColorRange given;
  char rest = 0;
  check(std::sscanf(wish.c_str(), "%f,%f%c", &given.lo, &given.hi, &rest) == 2 &&
            std::isfinite(given.lo) && std::isfinite(given.hi) && given.hi > given.lo,
        ErrorKind::kUsage, "--range {}: expected LO,HI such as 0,96, or first, or each", wish);
  range_ = given;
}

ColorRange RangeChooser::of(const FloatMap& disparity) {
  if (each_) return robust_range(disparity);
  if (!range_) range_ = robust_range(disparity);
  return *range_;
}

Geometry::Geometry(const MatchSettings& settings)
    : cx_(settings.cx),
      cy_(settings.cy),
      baseline_(settings.baseline),
      doffs_(settings.doffs),
      by_hand_(settings.focal.has_value()) {
  if (by_hand_) {
    Calibration c;
    c.fx = c.fy = *settings.focal;
    c.baseline = *settings.baseline;
    c.doffs = settings.doffs.value_or(0);
    c.cx = cx_.value_or(0);  // the image's centre, once its size is known
    c.cy = cy_.value_or(0);
    c.source = "the command line";
    c.validate();
    given_ = c;
  } else if (!settings.calibration_file.empty()) {
    given_ = read_calibration(settings.calibration_file);
  }
}

void Geometry::guess(const InputPair& pair, nlohmann::json& report) {
  if (given_ && !guessed_) return;
  check(pair.focal_guess || !baseline_, ErrorKind::kUsage,
        "{}: its EXIF data hold no focal length; give --focal too, in pixels", pair.left_name);
  given_.reset();
  if (!pair.focal_guess) return;
  report["exif"] = {{"focal_px", *pair.focal_guess}};
  if (pair.baseline_guess) report["exif"]["baseline_m"] = *pair.baseline_guess;
  const auto baseline = baseline_ ? baseline_ : pair.baseline_guess;
  if (baseline) {
    Calibration c;
    c.fx = c.fy = *pair.focal_guess;
    c.baseline = *baseline;
    c.doffs = doffs_.value_or(0);
    c.source = fmt::format("focal length from EXIF, a first guess; baseline from {}",
                           baseline_ ? "the command line" : "the MPO file");
    c.validate();
    given_ = c;
    by_hand_ = guessed_ = true;
  }
  if (!told_)
    log_info("{}: EXIF gives a focal length of about {:.0f} px. {}", pair.stem, *pair.focal_guess,
             baseline ? "Expect depth errors of several per cent; a calibration is better"
                      : "Add --baseline METRES to get depth");
  told_ = true;
}

Calibration Geometry::of(ImageSize original, ImageSize matched) {
  Calibration c = given_.value();
  if (by_hand_) {
    c.cx = cx_.value_or((original.width - 1) / 2.0);
    c.cy = cy_.value_or((original.height - 1) / 2.0);
  } else if (c.width > 0 && c.height > 0 &&
             (c.width != original.width || c.height != original.height)) {
    const double sx = static_cast<double>(original.width) / c.width;
    const double sy = static_cast<double>(original.height) / c.height;
    // A resized image keeps its aspect ratio up to rounding. Anything else was cropped, and the
    // sizes do not tell where.
    check(std::abs(c.height * sx - original.height) <= std::max(1.0, 0.01 * original.height),
          ErrorKind::kInput,
          "{}: is for {}x{} images, but these are {}x{}, with a different aspect ratio. Cropping "
          "moves the principal point: give the calibration of the cropped images.",
          c.source, c.width, c.height, original.width, original.height);
    if (!warned_)
      log_warning("{}: is for {}x{} images, these are {}x{}; scaling the calibration to fit",
                  c.source, c.width, c.height, original.width, original.height);
    warned_ = true;
    c = c.scaled(sx, sy);
  }
  c = c.scaled(static_cast<double>(matched.width) / original.width,
               static_cast<double>(matched.height) / original.height);
  c.validate();
  return c;
}

}  // namespace nmrf::cli
