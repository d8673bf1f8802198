// What `nmrf match` is asked to do: its options, where results go, and the geometry in use.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/pair_rectifier.h"
#include "io/pair_source.h"
#include "nmrf/geometry.h"
#include "nmrf/matcher.h"
#include "viz/colormap.h"

namespace nmrf::cli {

// Clouds and meshes, and the forms of other tools.
struct ExportSettings {
  std::vector<std::string> formats;  // pcd, obj, glb, colmap, tum, ros
  PointCloudOptions cloud;
  double voxel = 0;                // metres; 0: all points
  std::optional<double> outliers;  // deviations
  double cut = 1;                  // of meshes, px per pixel
  void add_to(CLI::App& app, const std::string& group);
  // Throws Error(kUsage).
  void validate() const;
  // Thinned and without outliers, as asked for.
  std::vector<Point> finish(std::vector<Point> points) const;
};

struct MatchSettings {
  PairInput input;
  std::string output = "nmrf-out/";
  std::string format, depth_format = "png";
  std::string model;
  MatcherOptions matcher;
  MatchOptions match;
  std::string view = "left";
  RectifySettings rectify;
  bool lr_check = false;
  double lr_threshold = 1;
  bool confidence = false, mask = false, no_picture = false;
  bool no_depth = false, no_cloud = false, keep_filled = false;
  bool no_checks = false, json = false, no_frames = false, page = false;
  std::optional<std::int64_t> frames;  // of a video, at most
  std::optional<bool> window;          // of a video; not said: of a camera
  std::string colormap = "turbo", range = "first";
  std::string calibration_file, truth_file;
  std::optional<double> focal, baseline, doffs, cx, cy;
  std::optional<std::size_t> memory;  // bytes
  ExportSettings exports;
  CommonOptions common;

  void add_to(CLI::App& app);
  // The settings with what follows from them: threads, what a cloud keeps.
  void complete();
  // Throws Error(kUsage) for values that make no sense, alone or together.
  void validate() const;
  // A calibration is given, in a file or by numbers, of which the photographs may tell one.
  bool by_calibration() const {
    return !calibration_file.empty() || baseline.has_value() || rectify.by_calibration();
  }
};

// Where the results of a pair go.
class OutputNames {
 public:
  // Throws Error(kUsage) for a name that fits no format. `many`: more than one pair will come.
  OutputNames(const MatchSettings& settings, bool many);
  // Makes the folder; throws Error(kFailure) when it cannot be made or written to.
  void make_ready() const;

  // `view` is "" for the left view, "_right" for the right one.
  std::filesystem::path disparity(const std::string& stem, const std::string& view) const;
  std::filesystem::path companion(const std::string& stem, const std::string& suffix) const;

 private:
  std::optional<std::filesystem::path> single_;
  std::string single_view_;  // the view that takes the name `single_`
  std::filesystem::path folder_;
  std::string extension_;
};

// The colour range over the run: given, from the first pair, or each pair's own.
class RangeChooser {
 public:
  // Throws Error(kUsage) unless `wish` is "LO,HI", "first" or "each".
  explicit RangeChooser(const std::string& wish);
  ColorRange of(const FloatMap& disparity);

 private:
  bool each_;
  std::optional<ColorRange> range_;
};

// The calibration of the run, fitted to the images as they come.
class Geometry {
 public:
  explicit Geometry(const MatchSettings& settings);
  bool known() const { return given_.has_value(); }
  // The calibration of pairs that were rectified by one.
  void use(const Calibration& calibration) { given_ = calibration; }
  // Where nothing better is known: the focal length that the camera noted in the pair's files, with
  // the baseline of the command line or of the file. Throws Error(kUsage) for a baseline alone.
  void guess(const InputPair& pair, nlohmann::json& report);
  // The calibration that holds for maps of size `matched`, made from images of size `original`. A
  // calibration of images of another size but the same shape is scaled, with a warning; of another
  // shape it is an Error(kInput).
  Calibration of(ImageSize original, ImageSize matched);

 private:
  std::optional<Calibration> given_;
  std::optional<double> cx_, cy_, baseline_, doffs_;
  bool by_hand_ = false, guessed_ = false;
  bool warned_ = false, told_ = false;
};

}  // namespace nmrf::cli
