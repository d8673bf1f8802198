// nmrf asp: the form in which Ames Stereo Pipeline calls a stereo algorithm.
#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/command.h"
#include "cli/models.h"
#include "core/check.h"
#include "core/file.h"
#include "core/log.h"
#include "core/quantile.h"
#include "io/formats.h"
#include "nmrf/files.h"
#include "nmrf/matcher.h"

namespace nmrf::cli {
namespace {

// Grey levels of any range as 8-bit RGB: the 0.5 % darkest and brightest are clipped, and what is
// unknown gets the median. Both images share the range.
Image to_image(const FloatMap& map, float low, float high, float middle) {
  Image image(map.width(), map.height());
  for (int y = 0; y < map.height(); ++y)
    for (int x = 0; x < map.width(); ++x) {
      const float value = map.at(y, x);
      const float part = ((std::isfinite(value) ? value : middle) - low) / (high - low);
      const auto level = static_cast<std::uint8_t>(std::lround(255 * std::clamp(part, 0.f, 1.f)));
      std::fill_n(image.row(y) + 3 * x, 3, level);
    }
  return image;
}

}  // namespace

int cmd_asp(int argc, char** argv) {
  CLI::App app{
      "Stereo plug-in for Ames Stereo Pipeline: aligned 32-bit float TIFF clips in, disparity out, "
      "NaN for no data.\n\n"
      "  nmrf asp left.tif right.tif disparity.tif\n"
      "  parallel_stereo --alignment-method local_epipolar --stereo-algorithm \"nmrf_asp "
      "--max-disp 256\" ...\n\n"
      "ASP cannot pass a subcommand: register a script nmrf_asp that runs nmrf asp \"$@\".\n",
      "nmrf asp"};
  std::string left_name, right_name, output, model;
  int sign = 1;
  bool keep_filled = false;
  double min_confidence = 0;
  MatcherOptions matcher;
  MatchOptions how;
  CommonOptions common;
  app.add_option("LEFT", left_name, "Left image, 32-bit float TIFF")->required();
  app.add_option("RIGHT", right_name, "Right image of the same size")->required();
  app.add_option("OUTPUT", output, "Disparity of the left image")->required();
  app.add_option("--min-disp", how.min_disp,
                 "Smallest disparity to search, pixels; may be negative")
      ->check(CLI::Range(-16384, 16384));
  add_max_disp(app, matcher.max_disp);
  add_scale(app, how.scale, "As for nmrf match");
  app.add_option("--sign", sign, "1: x_right = x_left - d; -1: x_right = x_left + d")
      ->check(CLI::IsMember({1, -1}))
      ->capture_default_str();
  app.add_flag("--keep-filled", keep_filled, "Keep filled-in pixels instead of writing no data");
  app.add_option("--min-confidence", min_confidence, "Write no data below this confidence, 0 to 1")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("-m,--model", model, "Model file");
  common.add_to(app);
  if (int code = parse(app, argc, argv); code >= 0) return code;
  common.apply();
  how.full_size = true;
  matcher.threads = common.thread_count();

  const FloatMap left = read_disparity(left_name), right = read_disparity(right_name);
  check(left.same_size(right), ErrorKind::kInput,
        "{} is {}x{} but {} is {}x{}; both clips must have the same size", left_name, left.width(),
        left.height(), right_name, right.width(), right.height());
  std::vector<float> known;
  for (const FloatMap* map : {&left, &right})
    std::copy_if(map->begin(), map->end(), std::back_inserter(known),
                 [](float value) { return std::isfinite(value); });
  FloatMap result(left.width(), left.height(), std::numeric_limits<float>::quiet_NaN());
  if (known.empty()) {
    log_warning("{} and {} contain no data; the disparity will be empty too", left_name,
                right_name);
  } else {
    const float low = quantile(known, 0.005), middle = quantile(known, 0.5),
                high = std::max(quantile(known, 0.995), low + 1e-6f * (1 + std::abs(low)));
    const Disparity found =
        Matcher::load(model_path(model), matcher)
            .match(to_image(left, low, high, middle), to_image(right, low, high, middle), how);
    for (int y = 0; y < left.height(); ++y)
      for (int x = 0; x < left.width(); ++x) {
        if (!std::isfinite(left.at(y, x)) || !std::isfinite(found.map.at(y, x))) continue;
        if (!keep_filled && (found.mask.at(y, x) & kFilled)) continue;
        if (found.confidence.at(y, x) < min_confidence) continue;
        const float d = found.map.at(y, x);
        const auto seen = std::lround(static_cast<float>(x) - d);
        if (!keep_filled && (seen < 0 || seen >= left.width() ||
                             !std::isfinite(right.at(y, static_cast<int>(seen)))))
          continue;
        result.at(y, x) = static_cast<float>(sign) * d;
      }
  }
  write_file(output, formats::encode_tiff(result, output));
  return 0;
}

}  // namespace nmrf::cli
