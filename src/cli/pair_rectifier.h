// What is done to a pair before it is matched: rectification by a calibration or by the images'
// own features, and the correction of small errors.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "io/pair_source.h"
#include "nmrf/alignment.h"
#include "nmrf/rectify.h"

namespace nmrf::cli {

struct RectifySettings {
  // "small": correct small errors; "off": nothing; "auto": also rectify without a calibration;
  // else the files of a rig's calibration, separated by a comma.
  std::string wish = "small";
  std::optional<double> alpha;
  std::string size;       // WxH
  bool negative = false;  // disparities may be negative: the pair is not swapped

  // --alpha and --rectified-size.
  void add_to(CLI::App& app, const char* group);
  bool by_features() const { return wish == "auto"; }
  bool by_calibration() const { return wish != "small" && wish != "off" && wish != "auto"; }
  RectifyOptions options() const;
  // Throws Error(kUsage).
  void validate() const;
};

// Rectifies an unrectified pair by its features alone, in place, and reports how. Throws
// Error(kInput) with the reason when it cannot. Only the programs with OpenCV have one.
using FeatureRectifier = void (*)(InputPair& pair, nlohmann::json& report);
void set_feature_rectifier(FeatureRectifier rectifier);
bool has_feature_rectifier();

class PairRectifier {
 public:
  // Reads the calibration. video: all frames are corrected as the first one. checks: look for
  // swapped and unrectified images, without which small errors are not corrected either.
  PairRectifier(const RectifySettings& settings, bool video, bool checks);

  // Changes the pair's images; warnings go to the log and the report.
  void apply(InputPair& pair, nlohmann::json& report);
  // The calibration of the rectified pairs. Known once a pair was rectified by one.
  const std::optional<Rectifier>& by_calibration() const { return rectifier_; }
  // Whether the last pair is another one than was read.
  bool changed() const { return changed_; }

 private:
  void correct_small_errors(InputPair& pair, nlohmann::json& report);

  RectifySettings settings_;
  bool video_, checks_, changed_ = false;
  std::optional<StereoRig> rig_;
  std::optional<Rectifier> rectifier_;
  std::optional<Alignment> alignment_;  // of the pair before
};

}  // namespace nmrf::cli
