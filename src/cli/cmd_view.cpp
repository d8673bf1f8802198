// nmrf view: results of `nmrf match` as pages for a browser.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/command.h"
#include "cli/result_page.h"
#include "core/check.h"
#include "core/file.h"
#include "core/log.h"
#include "io/folders.h"
#include "nmrf/files.h"

namespace nmrf::cli {
namespace {

namespace fs = std::filesystem;
constexpr const char* kEnding = "_disparity";

// Files of results in a folder, sorted; a file stands for itself.
std::vector<fs::path> results_in(const fs::path& place) {
  check(fs::exists(place), ErrorKind::kInput, "{}: no such file or folder", place.string());
  if (!fs::is_directory(place)) return {place};
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(place))
    if (entry.path().stem().string().ends_with(kEnding) &&
        is_disparity_extension(entry.path().extension().string()))
      found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  check(!found.empty(), ErrorKind::kInput,
        "{}: contains no result of nmrf match (NAME_disparity.pfm, .png, .npy or .tiff)",
        place.string());
  return found;
}

// The photo of a result: `wish` itself, or the picture of its stem in the folder `wish`.
std::optional<Image> photo_of(const std::string& wish, const std::string& stem) {
  if (wish.empty()) return {};
  if (!fs::is_directory(wish)) return to_rgb8(read_image(wish), wish);
  if (const fs::path file = scan::image_file(fs::path(wish) / stem); !file.empty())
    return to_rgb8(read_image(file), file.string());
  log_warning("{}: no image called {}; the page will have no photo", wish, stem);
  return {};
}

}  // namespace

int cmd_view(int argc, char** argv) {
  CLI::App app{
      "Write results of nmrf match as HTML files: photo, map with values under the cursor, "
      "confidence,\n3-D cloud. Each file is self-contained and opens in any browser, offline.\n\n  "
      "nmrf view out/ --left left.png --calib calib.txt\n  nmrf view out/ --left left/\n  nmrf "
      "match left.png right.png -o out/ --page      # in one step\n",
      "nmrf view"};
  std::string place, left, calibration_file;
  CommonOptions common;
  app.add_option("RESULTS", place, "Output folder of nmrf match, or one disparity file")
      ->required();
  app.add_option("--left", left, "Left image, or folder of left images");
  app.add_option("--calib", calibration_file, "Calibration, as for nmrf match");
  common.add_to(app);
  if (int code = parse(app, argc, argv); code >= 0) return code;
  common.apply();

  std::optional<Calibration> given;
  if (!calibration_file.empty()) given = read_calibration(calibration_file);
  for (const fs::path& file : results_in(place)) {
    std::string stem = file.stem().string();
    if (stem.ends_with(kEnding)) stem.resize(stem.size() - std::string_view(kEnding).size());
    auto beside = [&](const char* ending) { return file.parent_path() / (stem + ending); };
    Disparity result;
    result.map = read_disparity(file);
    if (fs::exists(beside("_confidence.npy")))
      result.confidence = read_disparity(beside("_confidence.npy"));
    if (fs::exists(beside("_mask.png"))) {
      const Image mask = read_image(beside("_mask.png"));
      result.mask = ByteMap(mask.width(), mask.height());
      if (mask.channels() == 1 && mask.bits() == 8)
        for (int y = 0; y < mask.height(); ++y)
          std::copy_n(mask.row(y), mask.width(), result.mask.row(y));
    }
    const auto photo = photo_of(left, stem);
    std::optional<Calibration> calibration = given;
    if (given && given->width > 0 && given->height > 0)
      calibration = given->scaled(static_cast<double>(result.map.width()) / given->width,
                                  static_cast<double>(result.map.height()) / given->height);
    const fs::path page = beside("_view.html");
    write_file(page, result_page(stem, result, photo ? photo->view() : ImageView(), calibration));
    print(page.string());
  }
  return 0;
}

}  // namespace nmrf::cli
