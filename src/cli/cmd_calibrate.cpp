// nmrf calibrate: images of a board in, the calibration of two cameras out.
#include <fmt/format.h>

#include <filesystem>
#include <mutex>
#include <opencv2/imgproc.hpp>

#include "cli/command.h"
#include "core/check.h"
#include "core/file.h"
#include "core/log.h"
#include "core/thread_pool.h"
#include "io/pair_source.h"
#include "nmrf/files.h"
#include "nmrf/opencv.h"
#include "rig/calibrate.h"

namespace nmrf::cli {
namespace {

namespace fs = std::filesystem;

struct Settings {
  PairInput input;
  Board board;
  std::string size = "9x6", pattern = "chessboard", lens = "pinhole";
  std::string output = "stereo.yml", sheet;
  bool no_sheet = false, json = false;
  CommonOptions common;
};

void add_options(CLI::App& app, Settings& s) {
  add_pair_input(app, s.input);
  const char* board = "Board";
  app.add_option("--board", s.size, "Inner corners (or circles), columns x rows")
      ->capture_default_str()
      ->group(board);
  app.add_option("--square", s.board.square,
                 "Side of a square in metres; for circles, half their spacing within a row")
      ->capture_default_str()
      ->group(board);
  app.add_option("--pattern", s.pattern, "chessboard, circles (asymmetric grid) or charuco")
      ->check(CLI::IsMember({"chessboard", "circles", "charuco"}))
      ->capture_default_str()
      ->group(board);
  app.add_option("--marker", s.board.marker,
                 "charuco: side of a marker in metres [3/4 of --square]")
      ->group(board);
  app.add_option("--dictionary", s.board.dictionary,
                 "charuco: marker dictionary, such as 4x4_50 or 5x5_100")
      ->capture_default_str()
      ->group(board);
  app.add_option("--lens", s.lens,
                 "pinhole (5 coefficients), rational (8, wide lenses) or fisheye (4)")
      ->check(CLI::IsMember({"pinhole", "rational", "fisheye"}))
      ->capture_default_str();
  app.add_option("-o,--output", s.output, "Calibration file to write, OpenCV yml")
      ->capture_default_str();
  app.add_option("--sheet", s.sheet,
                 "Picture of the corners found and a rectified pair [next to the output]");
  app.add_flag("--no-sheet", s.no_sheet, "Write no picture");
  app.add_flag("--json", s.json, "Print everything as one JSON object");
  s.common.add_to(app);
}

struct Pictures {
  std::vector<BoardPair> pairs;
  std::vector<InputPair> images;
  cv::Size size;
};

cv::Mat grey_of(const Image& image) {
  cv::Mat grey;
  cv::cvtColor(mat(const_cast<Image&>(image)), grey, cv::COLOR_RGB2GRAY);
  return grey;
}

Pictures find_boards(const Settings& s) {
  Pictures result;
  auto source = open_pairs(s.input);
  check(!source->frame_rate(), ErrorKind::kUsage,
        "calibration needs still images; take them with the board held still");
  InputPair pair;
  while (source->next(pair)) {
    if (pair.error) throw Error(*pair.error);
    const cv::Size size(pair.left.width(), pair.left.height());
    check(result.images.empty() || size == result.size, ErrorKind::kInput,
          "{}: is {}x{}, but earlier images are {}x{}; all images must have the same size",
          pair.left_name, size.width, size.height, result.size.width, result.size.height);
    result.size = size;
    result.pairs.push_back({pair.stem, {}, {}});
    result.images.push_back(std::move(pair));
  }
  // Pairs in parallel; OpenCV's own threads would only get into their way.
  cv::setNumThreads(1);
  watch_interrupts();
  ProgressLine progress(!s.common.quiet);
  std::mutex mutex;
  int done = 0;
  ThreadPool pool(s.common.thread_count());
  pool.share(static_cast<std::int64_t>(result.images.size()), 1,
             [&](std::int64_t begin, std::int64_t end, int) {
               for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end);
                    ++i) {
                 if (interrupted()) return;
                 BoardPair& found = result.pairs[i];
                 try {
                   found.left = find_board(grey_of(result.images[i].left), s.board);
                   found.right = find_board(grey_of(result.images[i].right), s.board);
                 } catch (const cv::Exception&) {  // counts as not found
                 }
                 std::lock_guard lock(mutex);
                 progress.show(fmt::format("corners {}/{}", ++done, result.images.size()));
               }
             });
  return result;
}

// What to try when hardly any board was found.
std::string guess(const Settings& s, const Pictures& pictures) {
  for (std::size_t i = 0; i < std::min<std::size_t>(3, pictures.images.size()); ++i)
    if (const std::string doubt = board_doubt(grey_of(pictures.images[i].left), s.board);
        !doubt.empty())
      return fmt::format(" {} {}.", pictures.images[i].left_name, doubt);
  return "";
}

nlohmann::json report_of(const RigCalibration& found, std::size_t used) {
  const StereoRig& rig = found.rig;
  const double baseline = std::hypot(rig.translation[0], rig.translation[1], rig.translation[2]);
  auto camera = [](const Camera& c) {
    return nlohmann::json{
        {"fx", c.fx}, {"fy", c.fy}, {"cx", c.cx}, {"cy", c.cy}, {"distortion", c.distortion}};
  };
  nlohmann::json views = nlohmann::json::array();
  for (const auto& v : found.views) {
    views.push_back({{"name", v.name}, {"points", v.points}, {"rms_px", v.rms}});
    if (!v.rejected.empty()) views.back()["rejected"] = v.rejected;
  }
  return {{"views_used", used},
          {"rms_px", found.rms},
          {"rms_left_px", found.rms_left},
          {"rms_right_px", found.rms_right},
          {"vertical_before_px", found.vertical_before},
          {"vertical_px", found.vertical_after},
          {"coverage_left", found.coverage_left},
          {"coverage_right", found.coverage_right},
          {"tilt_deg", found.tilt},
          {"baseline_m", baseline},
          {"left", camera(rig.left)},
          {"right", camera(rig.right)},
          {"views", views},
          {"advice", found.advice}};
}

void print_report(const RigCalibration& found, const nlohmann::json& report) {
  for (const auto& v : found.views)
    if (!v.rejected.empty()) print(fmt::format("dropped {}: {}", v.name, v.rejected));
  print(fmt::format(
      "{} of {} positions used; reprojection error {:.3f} px (left {:.3f}, right {:.3f})",
      report["views_used"].get<int>(), found.views.size(), found.rms, found.rms_left,
      found.rms_right));
  print(fmt::format("vertical error of the corners {:.2f} px as taken, {:.3f} px rectified",
                    found.vertical_before, found.vertical_after));
  print(fmt::format("focal length {:.1f} and {:.1f} px, baseline {:.4f} m", found.rig.left.fx,
                    found.rig.right.fx, report["baseline_m"].get<double>()));
  print(
      fmt::format("the board covered {:.0f} % of the left and {:.0f} % of the right image, tilted "
                  "by up to {:.0f} degrees",
                  100 * found.coverage_left, 100 * found.coverage_right, found.tilt));
  for (const auto& file : report["files"]) print("  " + file.get<std::string>());
}

}  // namespace

int cmd_calibrate(int argc, char** argv) {
  CLI::App app{
      "Calibrate two cameras from images of a board that both see.\n\n"
      "  nmrf calibrate left/ right/ --board 9x6 --square 0.025 -o stereo.yml\n"
      "  nmrf calibrate left/ right/ --pattern charuco --board 10x7 --square 0.03 --lens "
      "fisheye\n\n"
      "Take 15 to 30 pairs with the board held still: tilted in all directions, near and far, in "
      "every\n"
      "corner of the images. Then: nmrf match left.png right.png --rectify stereo.yml\n",
      "nmrf calibrate"};
  Settings s;
  add_options(app, s);
  if (int code = parse(app, argc, argv); code >= 0) return code;
  s.common.apply();
  const ImageSize size = parse_size(s.size, 3);
  s.board.columns = size.width;
  s.board.rows = size.height;
  s.board.kind = s.pattern == "chessboard" ? BoardKind::kChessboard
                 : s.pattern == "circles"  ? BoardKind::kCircles
                                           : BoardKind::kCharuco;
  s.board.validate();
  const LensModel lens = s.lens == "pinhole"    ? LensModel::kPinhole
                         : s.lens == "rational" ? LensModel::kRational
                                                : LensModel::kFisheye;
  const std::string extension = fs::path(s.output).extension().string();
  check(extension == ".yml" || extension == ".yaml", ErrorKind::kUsage,
        "-o {}: a calibration is written as .yml", s.output);

  const Pictures pictures = find_boards(s);
  if (interrupted()) return kExitInterrupted;
  RigCalibration found;
  try {
    found = calibrate_rig(pictures.pairs, pictures.size, s.board, lens);
  } catch (const Error& error) {
    std::size_t seen = 0;
    for (const auto& pair : pictures.pairs) seen += pair.left.found() || pair.right.found();
    const bool few = 4 * seen < pictures.pairs.size() + 4 || s.board.kind == BoardKind::kCharuco;
    throw Error(error.kind(), error.what() + (few ? guess(s, pictures) : std::string()));
  }
  // A part of a larger board is found as well, in each image another one.
  if (found.rms > kHighError)
    if (const std::string doubt = guess(s, pictures); !doubt.empty())
      found.advice.push_back(doubt.substr(1));
  std::size_t used = 0, shown = 0;
  for (std::size_t i = 0; i < found.views.size(); ++i) {
    if (!found.views[i].rejected.empty()) continue;
    if (used++ == 0) shown = i;
  }
  nlohmann::json report = report_of(found, used);
  const Rectifier rectifier(found.rig, {});
  write_rig(s.output, found.rig, rectifier);
  report["files"].push_back(s.output);
  if (!s.no_sheet) {
    const fs::path path =
        s.sheet.empty() ? fs::path(s.output).replace_extension(".jpg") : fs::path(s.sheet);
    auto bgr = [](const Image& image) {
      cv::Mat result;
      cv::cvtColor(mat(const_cast<Image&>(image)), result, cv::COLOR_RGB2BGR);
      return result;
    };
    const cv::Mat sheet = calibration_sheet(found, pictures.pairs, bgr(pictures.images[shown].left),
                                            bgr(pictures.images[shown].right));
    write_image(path, view(sheet));
    report["files"].push_back(path.string());
  }
  for (const auto& advice : found.advice) log_warning("{}", advice);
  if (s.json)
    print_json(report);
  else
    print_report(found, report);
  return 0;
}

}  // namespace nmrf::cli
