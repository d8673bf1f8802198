#include "cli/pair_rectifier.h"

#include <cmath>
#include <numbers>

#include "cli/command.h"
#include "cli/rectify_choice.h"
#include "core/check.h"
#include "core/log.h"
#include "nmrf/checks.h"

namespace nmrf::cli {
namespace {

FeatureRectifier g_rectifier = nullptr;

std::vector<std::filesystem::path> files_of(const std::string& wish) {
  std::vector<std::filesystem::path> files;
  std::size_t begin = 0;
  while (begin <= wish.size()) {
    const std::size_t end = std::min(wish.find(',', begin), wish.size());
    files.emplace_back(wish.substr(begin, end - begin));
    begin = end + 1;
  }
  return files;
}

}  // namespace

void set_feature_rectifier(FeatureRectifier rectifier) { g_rectifier = rectifier; }
bool has_feature_rectifier() { return g_rectifier != nullptr; }

void RectifySettings::add_to(CLI::App& app, const char* group) {
  app.add_option("--alpha", alpha,
                 "With a calibration: 0 keeps only pixels that both cameras see, 1 keeps all [0]")
      ->group(group);
  app.add_option("--rectified-size", size,
                 "With a calibration: WIDTHxHEIGHT of the rectified images [camera size]")
      ->group(group);
}

RectifyOptions RectifySettings::options() const {
  RectifyOptions options;
  options.alpha = alpha.value_or(0);
  if (!size.empty()) {
    const ImageSize wanted = parse_size(size, 32);
    options.width = wanted.width;
    options.height = wanted.height;
  }
  return options;
}

void RectifySettings::validate() const {
  options().validate();
  check(by_calibration() || (!alpha && size.empty()), ErrorKind::kUsage,
        "--alpha and --rectified-size need a calibration: --rectify FILE");
}

PairRectifier::PairRectifier(const RectifySettings& settings, bool video, bool checks)
    : settings_(settings), video_(video), checks_(checks) {
  if (settings.by_calibration()) rig_ = read_rig(files_of(settings.wish));
}

void PairRectifier::apply(InputPair& pair, nlohmann::json& report) {
  changed_ = false;
  if (rig_) {
    if (!rectifier_) {
      if (rig_->left.width == 0) {
        rig_->left.width = rig_->right.width = pair.left.width();
        rig_->left.height = rig_->right.height = pair.left.height();
      }
      rectifier_.emplace(*rig_, settings_.options());
    }
    try {
      pair.left = rectifier_->left(pair.left);
      pair.right = rectifier_->right(pair.right);
    } catch (const Error& error) {  // it knows no file names
      throw Error(error.kind(), pair.left_name + ": " + error.what());
    }
    changed_ = true;
  }
  if (checks_) correct_small_errors(pair, report);
}

void PairRectifier::correct_small_errors(InputPair& pair, nlohmann::json& report) {
  PairCheck verdict = check_pair(pair.left, pair.right);
  if (settings_.by_features() && wants_features(verdict)) {
    try {
      g_rectifier(pair, report);
      changed_ = true;
      verdict = check_pair(pair.left, pair.right);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kInput || !verdict.correctable) throw;
      log_info("{} A small correction does.", error.what());
    }
  }
  // Its warning follows that of identical images.
  if (verdict.swapped && settings_.negative)
    verdict.warnings.erase(verdict.warnings.begin() + (verdict.identical ? 1 : 0));
  const bool decided = video_ && alignment_;
  if (!decided)
    alignment_ = settings_.wish != "off" && verdict.correctable ? verdict.alignment : Alignment();
  if (!alignment_->none()) {
    pair.right = aligned(pair.right, *alignment_);
    if (verdict.not_rectified) verdict.warnings.pop_back();  // its warning is the last
    const double degrees = alignment_->turn * 180 / std::numbers::pi;
    report["corrected"] = {
        {"offset_px", alignment_->offset},     {"turn_deg", degrees},
        {"scale", 1 + alignment_->scale},      {"keystone_per_px", alignment_->keystone},
        {"error_px", verdict.alignment_error}, {"matches", verdict.matches}};
    if (!decided)
      log_info(
          "{}: the right image is {:.2f} px too {}, rotated by {:.2f} degrees and scaled by "
          "{:.4f}; corrected before matching (--rectify off to disable)",
          pair.stem, std::abs(alignment_->offset), alignment_->offset > 0 ? "low" : "high", degrees,
          1 + alignment_->scale);
  }
  for (const auto& warning : verdict.warnings) {
    log_warning("{}: {}", pair.stem, warning);
    report["warnings"].push_back(warning);
  }
}

}  // namespace nmrf::cli
