// nmrf rectify: two cameras' images in, a rectified pair and its calibration out.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/command.h"
#include "cli/pair_batch.h"
#include "cli/pair_rectifier.h"
#include "cli/program.h"
#include "core/check.h"
#include "core/file.h"
#include "core/log.h"
#include "nmrf/checks.h"
#include "nmrf/files.h"

namespace nmrf::cli {
namespace {

namespace fs = std::filesystem;

struct Settings {
  PairInput input;
  std::string output = "rectified/";
  std::string format = "png";
  RectifySettings rectify{.wish = "auto", .alpha = {}, .size = {}};
  bool lines = false, json = false;
  CommonOptions common;
};

// Both images side by side with lines along rows, on which matching points must lie.
Image with_lines(const Image& left, const Image& right) {
  constexpr int kLines = 16;
  Image sheet(2 * left.width(), left.height());
  for (int y = 0; y < left.height(); ++y) {
    std::copy_n(left.row(y), left.row_bytes(), sheet.row(y));
    std::copy_n(right.row(y), right.row_bytes(), sheet.row(y) + left.row_bytes());
  }
  for (int i = 0; i < kLines; ++i) {
    std::uint8_t* row = sheet.row((2 * i + 1) * sheet.height() / (2 * kLines));
    for (int x = 0; x < sheet.width(); ++x) {
      row[3 * x] = i % 2 ? 255 : 0;
      row[3 * x + 1] = 255;
      row[3 * x + 2] = 0;
    }
  }
  return sheet;
}

nlohmann::json process(InputPair& pair, PairRectifier& rectifier, const Settings& s) {
  nlohmann::json report{{"left", pair.left_name}, {"right", pair.right_name}};
  rectifier.apply(pair, report);
  report["size"] = {pair.left.width(), pair.left.height()};
  const PairCheck rest = check_pair(pair.left, pair.right);
  if (rest.conclusive)
    report["vertical_px"] = rest.alignment.vertical_rms(pair.left.width(), pair.left.height());
  const fs::path folder = s.output;
  auto write = [&](const fs::path& path, const Image& image) {
    make_folder(path.parent_path());
    write_image(path, image);
    report["files"].push_back(path.string());
  };
  write(folder / "left" / (pair.stem + "." + s.format), pair.left);
  write(folder / "right" / (pair.stem + "." + s.format), pair.right);
  if (s.lines) write(folder / "lines" / (pair.stem + ".jpg"), with_lines(pair.left, pair.right));
  return report;
}

void print_report(const InputPair& pair, const nlohmann::json& report) {
  std::string text = fmt::format("{}: {}x{}", pair.stem, pair.left.width(), pair.left.height());
  if (report.contains("vertical_px"))
    text += fmt::format(", vertical error {:.2f} px (RMS over the image)",
                        report["vertical_px"].get<double>());
  print(text);
  for (const auto& file : report["files"]) print("  " + file.get<std::string>());
}

}  // namespace

int cmd_rectify(int argc, char** argv) {
  CLI::App app{
      "Rectify stereo pairs, so that matching points lie on the same row.\n\n"
      "  nmrf rectify left/ right/ --calib stereo.yml -o rectified/\n"
      "  nmrf rectify left.png right.png --calib left.yaml,right.yaml -o rectified/ --lines\n"
      "  nmrf rectify left.jpg right.jpg -o rectified/\n\n"
      "With a calibration, calibration.yml of the rectified pair is written too, for match "
      "--calib.\n"
      "Without one, the pair is rectified from features found in both images.\n",
      "nmrf rectify"};
  Settings s;
  std::string calibration;
  add_pair_input(app, s.input);
  app.add_option("-c,--calib", calibration,
                 "Stereo calibration: FILE, or FILE,FILE (OpenCV yml/xml, Kalibr camchain, two ROS "
                 "camera_info files, KITTI calib_cam_to_cam)");
  s.rectify.add_to(app, "");
  app.add_option("-o,--output", s.output, "Output folder")->capture_default_str();
  app.add_option("--format", s.format, "png, jpg, webp, bmp, tiff or ppm")
      ->check(CLI::IsMember({"png", "jpg", "webp", "bmp", "tiff", "ppm"}))
      ->capture_default_str();
  app.add_flag("--lines", s.lines, "Also write a picture of each pair with horizontal lines");
  app.add_flag("--json", s.json, "Print one JSON object per pair");
  s.common.add_to(app);
  if (int code = parse(app, argc, argv); code >= 0) return code;
  s.common.apply();
  if (!calibration.empty()) s.rectify.wish = calibration;
  s.rectify.validate();
  check(!s.output.empty(), ErrorKind::kUsage, "-o is empty; expected a folder");
  if (s.rectify.by_features() && !has_feature_rectifier()) hand_over(kTools, argc, argv);
  auto source = open_pairs(s.input);
  const auto total = source->total();
  const bool many = !total || *total != 1;
  PairRectifier rectifier(s.rectify, source->frame_rate().has_value(), true);

  watch_interrupts();
  PairBatch batch(many, s.json, s.common.quiet);
  InputPair pair;
  while (!interrupted() && source->next(pair))
    batch.process(
        pair, fmt::format("pair {}  {}", pair.index + 1, pair.stem),
        [&] { return process(pair, rectifier, s); }, print_report);
  if (interrupted()) return kExitInterrupted;
  if (const auto& by_calibration = rectifier.by_calibration()) {
    const fs::path path = fs::path(s.output) / "calibration.yml";
    write_calibration(path, *by_calibration);
    if (!s.json) print(fmt::format("calibration of the rectified pairs: {}", path.string()));
  }
  batch.check_all_done();
  return 0;
}

}  // namespace nmrf::cli
