// FallingThings (FAT): objects falling through rendered scenes, truth as depth.
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/file.h"
#include "data/families.h"
#include "data/scan.h"

namespace nmrf::families {
namespace fs = std::filesystem;

namespace {

constexpr double kBaseline = 6.0;          // centimetres
constexpr double kUnitsPerLength = 100.0;  // depth files count 1/100 centimetre

// Focal length in pixels, the same for both cameras.
double focal_length(const fs::path& settings) {
  auto json =
      nlohmann::json::parse(read_file(settings, ErrorKind::kInput, 1 << 20), nullptr, false);
  static const nlohmann::json::json_pointer where("/camera_settings/0/intrinsic_settings/fx");
  double fx = 0;
  if (!json.is_discarded() && json.contains(where) && json[where].is_number())
    fx = json[where].get<double>();
  check(std::isfinite(fx) && fx > 0, ErrorKind::kInput,
        "{}: expected a positive number at camera_settings[0].intrinsic_settings.fx",
        settings.string());
  return fx;
}

}  // namespace

Refs fallingthings(const DatasetOptions& options) {
  scan::check_choice(options, "split", options.split, {"", "train", "all"});
  fs::path base = options.root;
  if (fs::path inner = scan::child(base, {"FallingThings", "fat"}); !inner.empty()) base = inner;
  if (fs::path inner = scan::child(base, {"fat"}); !inner.empty()) base = inner;
  scan::Collector out(options, true);
  out.looked_for((base / "**/*.left.{jpg,png}").string());
  for (const fs::path& relative : scan::folders_below(base)) {
    fs::path folder = base / relative;
    double fx = 0;  // read once a folder, and only where there are pictures
    for (const auto& file : scan::file_names(folder)) {
      std::string extension = fs::path(file).extension().string();
      std::string ending = ".left" + extension;
      if ((extension != ".jpg" && extension != ".png") || !file.ends_with(ending)) continue;
      std::string stem = file.substr(0, file.size() - ending.size());
      if (fx == 0) fx = focal_length(folder / "_camera_settings.json");
      SampleRef ref;
      ref.name = (relative / stem).lexically_normal().generic_string();
      ref.left = folder / file;
      ref.right = folder / (stem + ".right" + extension);
      ref.disparity = folder / (stem + ".left.depth.png");
      ref.right_disparity = folder / (stem + ".right.depth.png");
      ref.coding.kind = TruthKind::kDepth;
      ref.coding.depth_numerator = fx * kBaseline * kUnitsPerLength;
      ref.coding.unknown_from = 65535;  // the farthest value a file can hold: "this far or farther"
      ref.coding.max_disparity = 512;
      out.add(std::move(ref));
    }
  }
  return out.finish();
}

}  // namespace nmrf::families
