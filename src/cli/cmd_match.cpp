// nmrf match: stereo pairs in, disparity, pictures, depth and point clouds out.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command.h"
#include "cli/live_view.h"
#include "cli/match_exports.h"
#include "cli/match_settings.h"
#include "cli/models.h"
#include "cli/pair_batch.h"
#include "cli/pair_rectifier.h"
#include "cli/program.h"
#include "cli/result_page.h"
#include "core/check.h"
#include "core/cores.h"
#include "core/fields.h"
#include "core/file.h"
#include "core/log.h"
#include "core/quantile.h"
#include "io/pair_source.h"
#include "io/read_ahead.h"
#include "io/video.h"
#include "kernels/resample.h"
#include "nmrf/files.h"
#include "nmrf/sequence.h"
#include "viz/error_map.h"

namespace nmrf::cli {
namespace {

namespace fs = std::filesystem;

// Smallest, median and largest finite value of a map; zeros when there is none.
nlohmann::json span_of(const FloatMap& map) {
  std::vector<float> values;
  values.reserve(map.size());
  std::copy_if(map.begin(), map.end(), std::back_inserter(values),
               [](float v) { return std::isfinite(v); });
  if (values.empty()) return {{"min", 0.0}, {"median", 0.0}, {"max", 0.0}};
  const float median = quantile(values, 0.5);
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return {{"min", *least}, {"median", median}, {"max", *most}};
}

double share_of(const ByteMap& mask, int bits) {
  const auto count =
      std::count_if(mask.begin(), mask.end(), [&](int v) { return (v & bits) != 0; });
  return static_cast<double>(count) / static_cast<double>(std::max<std::size_t>(1, mask.size()));
}

ImageView grey(const ByteMap& map) {
  return {.data = map.data(), .width = map.width(), .height = map.height(), .channels = 1};
}

// 255 where one of the bits is set.
ByteMap picture_of(const ByteMap& mask, int bits) {
  ByteMap picture(mask.width(), mask.height());
  std::transform(mask.begin(), mask.end(), picture.begin(),
                 [&](int v) { return static_cast<std::uint8_t>((v & bits) != 0 ? 255 : 0); });
  return picture;
}

ByteMap picture_of(const FloatMap& confidence) {
  ByteMap picture(confidence.width(), confidence.height());
  std::transform(confidence.begin(), confidence.end(), picture.begin(), [](float v) {
    return static_cast<std::uint8_t>(std::lround(255 * std::clamp(v, 0.f, 1.f)));
  });
  return picture;
}

ImageSize size_of(const Image& image) { return {image.width(), image.height()}; }
ImageSize size_of(const FloatMap& map) { return {map.width(), map.height()}; }

// The image in the size of a map that was made of it after scaling.
Image resized(const ImageView& image, ImageSize size) {
  const Image from = to_rgb8(image);
  Image result(size.width, size.height);
  kernels::Resampler resampler;
  const bool reduced = size.width < from.width();
  resampler.prepare(reduced ? kernels::Resampling::kArea : kernels::Resampling::kBicubic,
                    from.width(), from.height(), size.width, size.height);
  std::vector<float> work(resampler.work_floats());
  resampler.rows(from.data(), static_cast<std::ptrdiff_t>(from.row_bytes()), result.data(),
                 static_cast<std::ptrdiff_t>(result.row_bytes()), 0, size.height, work.data());
  return result;
}

// The error of a map in the usual figures: mean in px, shares in per cent of the known pixels.
nlohmann::json against_truth(const FloatMap& map, const FloatMap& truth) {
  double sum = 0;
  std::int64_t known = 0, bad1 = 0, bad2 = 0, d1 = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    const double wanted = truth.data()[i];
    if (!std::isfinite(wanted)) continue;
    const double error = std::abs(map.data()[i] - wanted);
    ++known;
    sum += error;
    bad1 += !(error <= 1);
    bad2 += !(error <= 2);
    d1 += !(error <= 3 || error <= 0.05 * wanted);
  }
  const double scale = 1 / static_cast<double>(std::max<std::int64_t>(1, known));
  auto share = [&](std::int64_t count) { return 100 * scale * static_cast<double>(count); };
  return {{"epe", sum * scale}, {"bad1", share(bad1)}, {"bad2", share(bad2)}, {"d1", share(d1)}};
}

// The disparity of one view, pair after pair.
class ViewMatcher {
 public:
  // video: each pair is much like the one before.
  ViewMatcher(const Matcher& matcher, MatchOptions how, View view, bool video)
      : matcher_(matcher), how_(std::move(how)) {
    how_.view = view;
    if (video) sequence_.emplace(matcher, how_);
  }
  Disparity& match(const InputPair& pair) {
    try {
      if (sequence_)
        result_ = sequence_->next(pair.left, pair.right);
      else
        matcher_.match(pair.left, pair.right, how_, result_);
      return result_;
    } catch (const Error& error) {  // the matcher knows no file names
      throw Error(error.kind(), pair.left_name + ": " + error.what());
    }
  }

 private:
  const Matcher& matcher_;
  MatchOptions how_;
  std::optional<Sequence> sequence_;
  Disparity result_;
};

// One run of the command: what stays the same from pair to pair.
class Run {
 public:
  Run(const MatchSettings& settings, const Matcher& matcher, const OutputNames& names,
      Geometry& geometry, std::optional<double> frame_rate)
      : s_(settings),
        names_(names),
        geometry_(geometry),
        matcher_(matcher),
        left_(matcher, s_.match, View::kLeft, frame_rate.has_value()),
        right_(matcher, s_.match, View::kRight, frame_rate.has_value()),
        range_(s_.range),
        rectifier_(s_.rectify, frame_rate.has_value(), !s_.no_checks),
        exporter_(s_.exports, frame_rate),
        window_(s_.window, s_.input.camera.has_value()),
        frame_rate_(frame_rate) {
    fields_detail::decode("--colormap", s_.colormap, colormap_);
    if (!s_.truth_file.empty()) truth_ = read_disparity(s_.truth_file);
  }

  // Everything that is done for one good pair; returns its report.
  nlohmann::json process(InputPair& pair);
  // The user has closed the window.
  bool closed() const { return window_.closed(); }
  // After the last pair: the disparity video, if there is one. Returns its path.
  std::optional<fs::path> finish();

 private:
  void write_frame(const InputPair& pair, const Disparity& result);
  void write_view(const InputPair& pair, const Disparity& result, const std::string& suffix,
                  nlohmann::json& report);
  void write_geometry(const InputPair& pair, const Disparity& result, const std::string& suffix,
                      nlohmann::json& report);
  // Says what a large pair will need.
  void tell_memory(const InputPair& pair);
  // The path, noted in the report. Throws Error(kUsage) when it is one of the pair's own images.
  fs::path note(const fs::path& path, const InputPair& pair, nlohmann::json& report) const;

  const MatchSettings& s_;
  const OutputNames& names_;
  Geometry& geometry_;
  const Matcher& matcher_;
  ViewMatcher left_, right_;
  RangeChooser range_;
  PairRectifier rectifier_;
  Exporter exporter_;
  LiveView window_;
  std::optional<double> frame_rate_;  // of a video
  std::optional<DisparityVideo> video_;
  fs::path video_path_;
  std::optional<FloatMap> truth_;
  std::size_t told_memory_ = 1'000'000'000;  // bytes; only more is worth a line
  Colormap colormap_ = Colormap::kTurbo;
};

fs::path Run::note(const fs::path& path, const InputPair& pair, nlohmann::json& report) const {
  std::error_code ignored;
  for (const auto& input : {pair.left_name, pair.right_name})
    check(!fs::equivalent(path, input, ignored), ErrorKind::kUsage,
          "{}: is an input file; choose another name with -o", path.string());
  report["files"].push_back(path.string());
  return path;
}

void Run::tell_memory(const InputPair& pair) {
  const std::size_t bytes = matcher_.memory(pair.left.width(), pair.left.height(), s_.match);
  if (bytes <= told_memory_) return;
  told_memory_ = bytes;
  const double gigabytes = static_cast<double>(bytes) * 1e-9;
  const auto free = free_memory();
  if (free && bytes > *free)
    log_warning(
        "{}: {}x{} pixels need about {:.1f} GB of memory, but only {:.1f} GB are free; --memory 2G "
        "matches in tiles",
        pair.left_name, pair.left.width(), pair.left.height(), gigabytes,
        static_cast<double>(*free) * 1e-9);
  else
    log_info("{}: {}x{} pixels, about {:.1f} GB of memory", pair.left_name, pair.left.width(),
             pair.left.height(), gigabytes);
}

nlohmann::json Run::process(InputPair& pair) {
  nlohmann::json report;
  report["left"] = pair.left_name;
  report["right"] = pair.right_name;
  rectifier_.apply(pair, report);
  if (const auto& rectifier = rectifier_.by_calibration()) geometry_.use(rectifier->calibration());
  geometry_.guess(pair, report);
  report["size"] = {pair.left.width(), pair.left.height()};
  // Report a calibration that does not fit before the work starts.
  if (geometry_.known()) geometry_.of(size_of(pair.left), size_of(pair.left));

  tell_memory(pair);
  const auto start = std::chrono::steady_clock::now();
  Disparity *left = nullptr, *right = nullptr;
  if (s_.view != "right" || s_.lr_check) left = &left_.match(pair);
  if (s_.view != "left" || s_.lr_check) right = &right_.match(pair);
  if (s_.lr_check) {
    const auto threshold = static_cast<float>(s_.lr_threshold);
    check_consistency(*left, *right, View::kLeft, threshold);
    check_consistency(*right, *left, View::kRight, threshold);
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  report["seconds"] = elapsed.count();

  if (rectifier_.changed()) {
    write_image(note(names_.companion(pair.stem, "_rectified_left.png"), pair, report), pair.left);
    write_image(note(names_.companion(pair.stem, "_rectified_right.png"), pair, report),
                pair.right);
  }
  const Disparity& shown = s_.view == "right" ? *right : *left;
  if (frame_rate_) write_frame(pair, shown);
  if (window_.open())
    window_.show(s_.view == "right" ? pair.right : pair.left,
                 colorize(shown.map, colormap_, range_.of(shown.map)));
  if (s_.view != "right") write_view(pair, *left, "", report);
  if (s_.view != "left") write_view(pair, *right, "_right", report);
  return report;
}

void Run::write_frame(const InputPair& pair, const Disparity& result) {
  if (!video_) {
    // "clip_000000" becomes "clip".
    const std::string name = pair.stem.substr(0, pair.stem.rfind('_'));
    video_path_ = names_.companion(name, "_disparity.mkv");
    video_.emplace(video_path_, result.map.width(), result.map.height(), *frame_rate_);
    if (s_.match.min_disp < 0)
      log_info("{}: holds 256 x (disparity + {}), as it has no negative values",
               video_path_.string(), -s_.match.min_disp);
  }
  if (s_.match.min_disp >= 0) return video_->write(result.map);
  FloatMap moved = result.map;
  for (float& value : moved) value -= static_cast<float>(s_.match.min_disp);
  video_->write(moved);
}

std::optional<fs::path> Run::finish() {
  if (!video_) return {};
  video_->finish();
  return video_path_;
}

void Run::write_view(const InputPair& pair, const Disparity& result, const std::string& suffix,
                     nlohmann::json& report) {
  report["disparity" + suffix] = span_of(result.map);
  report["filled" + suffix] = share_of(result.mask, kFilled);
  if (frame_rate_ && s_.no_frames) return;
  write_disparity(note(names_.disparity(pair.stem, suffix), pair, report), result.map);
  auto companion = [&](const std::string& ending) {
    return note(names_.companion(pair.stem, suffix + ending), pair, report);
  };
  if (!s_.no_picture)
    write_image(companion("_vis.png"), colorize(result.map, colormap_, range_.of(result.map)));
  if (s_.confidence) {
    write_image(companion("_confidence_vis.png"), grey(picture_of(result.confidence)));
    write_disparity(companion("_confidence.npy"), result.confidence);
    if (!result.expected_error.empty()) {
      write_disparity(companion("_confidence3.npy"), result.confidence3);
      write_disparity(companion("_expected_error.npy"), result.expected_error);
    }
  }
  if (s_.lr_check) {
    constexpr int kHidden = kOccluded | kOutOfView;
    write_image(companion("_occluded.png"), grey(picture_of(result.mask, kHidden)));
    report["occluded" + suffix] = share_of(result.mask, kHidden);
  }
  if (s_.mask) write_image(companion("_mask.png"), grey(result.mask));
  if (truth_ && suffix.empty()) {
    check(truth_->same_size(result.map), ErrorKind::kInput,
          "{}: is {}x{}, but the map is {}x{}; add --full-size when using --scale", s_.truth_file,
          truth_->width(), truth_->height(), result.map.width(), result.map.height());
    write_image(companion("_error.png"), error_map(result.map, *truth_));
    report["against_truth"] = against_truth(result.map, *truth_);
  }
  if (s_.page && suffix.empty()) {
    std::optional<Calibration> calibration;
    if (geometry_.known()) calibration = geometry_.of(size_of(pair.left), size_of(result.map));
    write_file(companion("_view.html"), result_page(pair.stem, result, pair.left, calibration));
  }
  if (geometry_.known()) write_geometry(pair, result, suffix, report);
}

void Run::write_geometry(const InputPair& pair, const Disparity& result, const std::string& suffix,
                         nlohmann::json& report) {
  const Calibration c = geometry_.of(size_of(pair.left), size_of(result.map));
  const FloatMap depth = depth_from_disparity(result, c, s_.keep_filled);
  const nlohmann::json span = span_of(depth);
  report["depth_m" + suffix] = span;
  report["calibration"] = {
      {"focal_px", c.fx}, {"baseline_m", c.baseline}, {"doffs_px", c.doffs}, {"source", c.source}};
  log_info(
      "{}{}: f = {:.2f} px, baseline = {:.4f} m, doffs = {:.2f} px (from {}); depth {:.3f} to "
      "{:.3f} m, median {:.3f} m",
      pair.stem, suffix, c.fx, c.baseline, c.doffs, c.source, span["min"].get<double>(),
      span["max"].get<double>(), span["median"].get<double>());
  if (!s_.no_depth)
    write_depth(
        note(names_.companion(pair.stem, suffix + "_depth." + s_.depth_format), pair, report),
        depth);
  if (s_.confidence && !result.expected_error.empty())
    write_disparity(note(names_.companion(pair.stem, suffix + "_depth_sigma.npy"), pair, report),
                    depth_sigma(result, c, s_.keep_filled));
  // One cloud per pair, in the left camera's frame.
  if (!suffix.empty() || (s_.no_cloud && !exporter_.wanted())) return;
  const bool scaled =
      result.map.width() != pair.left.width() || result.map.height() != pair.left.height();
  const Image resized_left = scaled ? resized(pair.left, size_of(result.map)) : Image();
  const ImageView image = scaled ? resized_left.view() : pair.left.view();
  const auto points = s_.exports.finish(point_cloud(result, image, c, s_.exports.cloud));
  if (!s_.no_cloud) {
    write_ply(note(names_.companion(pair.stem, "_cloud.ply"), pair, report), points,
              s_.exports.cloud.normals);
    report["points"] = points.size();
  }
  exporter_.write(
      {pair, result, image, c, depth, points},
      [&](const std::string& ending) { return names_.companion(pair.stem, ending); },
      [&](const fs::path& file) { note(file, pair, report); });
}

// What a person reads of a report.
void print_report(const InputPair& pair, const nlohmann::json& report) {
  const auto& disparity = report[report.contains("disparity") ? "disparity" : "disparity_right"];
  print(fmt::format("{}: {}x{}, {:.2f} s, disparity {:.1f} to {:.1f} px, median {:.1f}", pair.stem,
                    pair.left.width(), pair.left.height(), report["seconds"].get<double>(),
                    disparity["min"].get<double>(), disparity["max"].get<double>(),
                    disparity["median"].get<double>()));
  if (report.contains("files"))
    for (const auto& file : report["files"]) print("  " + file.get<std::string>());
  if (report.contains("against_truth")) {
    const auto& errors = report["against_truth"];
    print(fmt::format("  error: EPE {:.3f} px, bad 1 px {:.2f} %, bad 2 px {:.2f} %, D1 {:.2f} %",
                      errors["epe"].get<double>(), errors["bad1"].get<double>(),
                      errors["bad2"].get<double>(), errors["d1"].get<double>()));
  }
}

}  // namespace

int cmd_match(int argc, char** argv) {
  CLI::App app{
      "Compute disparity, depth and point clouds from rectified stereo pairs.\n\n"
      "  nmrf match left.png right.png -o out/\n"
      "  nmrf match left.png right.png -o disparity.pfm\n"
      "  nmrf match left/ right/ -o out/ --calib calib.txt\n"
      "  nmrf match --list pairs.txt -o out/ --lr-check\n"
      "  nmrf match video.mp4 --side-by-side -o out/ --range 0,96\n"
      "  nmrf match --camera 0 -o out/ --no-frames\n\n"
      "Disparity is x_left - x_right in pixels, for the left image unless --view says otherwise.\n"
      "With RANK and WORLD_SIZE set, several processes share the pairs.\n",
      "nmrf match"};
  MatchSettings s;
  s.add_to(app);
  if (int code = parse(app, argc, argv); code >= 0) return code;
  s.common.apply();
  s.complete();
  s.validate();
  check(!s.input.left.empty() || !s.input.list.empty() || s.input.camera, ErrorKind::kUsage,
        "no input given. Try: nmrf match left.png right.png -o out/ (nmrf match --help lists all "
        "options)");
  if (needs_libtorch(s.matcher.device)) hand_over(kTrain, argc, argv);
  if (s.rectify.by_features() && !has_feature_rectifier()) hand_over(kTools, argc, argv);
  RangeChooser{s.range};  // reports a mistake before anything is read
  Geometry geometry(s);
  if (geometry.known() && s.view == "right" && !s.no_cloud)
    log_warning("--view right: no point cloud is written, as it belongs to the left view");
  s.input.shard = Shard::from_environment();
  auto source = open_pairs(s.input);
  const auto total = source->total();
  const bool many = !total || *total != 1 || s.input.shard.world > 1;
  if (s.input.camera)
    source = newest_only(std::move(source));
  else if (many)
    source = read_ahead(std::move(source), 2);
  OutputNames names(s, many);
  check(!s.window.value_or(false) || source->frame_rate(), ErrorKind::kUsage,
        "--window belongs to a video or a camera; --page shows the result of a pair");
  check(s.truth_file.empty() || !many, ErrorKind::kUsage,
        "--truth takes a single pair; use nmrf eval for more");
  Matcher matcher = Matcher::load(model_path(s.model), s.matcher);
  names.make_ready();
  Run run(s, matcher, names, geometry, source->frame_rate());

  watch_interrupts();
  PairBatch batch(many, s.json, s.common.quiet);
  InputPair pair;
  std::int64_t seen = 0;
  const bool video = source->frame_rate().has_value();
  const auto start = std::chrono::steady_clock::now();
  while (!interrupted() && !run.closed() && (!video || seen < s.frames.value_or(INT64_MAX)) &&
         source->next(pair)) {
    ++seen;
    std::string line = fmt::format("{} {}", video ? "frame" : "pair", pair.index + 1);
    if (total) line += fmt::format("/{}", *total);
    line += "  " + pair.stem;
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    if (video && batch.done() > 0)
      line += fmt::format("  {}x{}, {:.2f} frames per second", pair.left.width(),
                          pair.left.height(), static_cast<double>(batch.done()) / elapsed.count());
    batch.process(
        pair, line, [&] { return run.process(pair); }, print_report);
  }
  if (const auto path = run.finish(); path && !s.json) print("  " + path->string());
  if (interrupted()) {
    log_info("interrupted after {} pairs; the files written are complete", batch.done());
    return kExitInterrupted;
  }
  batch.check_all_done();
  return 0;
}

}  // namespace nmrf::cli
