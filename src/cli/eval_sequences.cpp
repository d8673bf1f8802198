#include "cli/eval_sequences.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>

#include "cli/command.h"
#include "core/check.h"
#include "core/file.h"
#include "core/quantile.h"
#include "eval/summary.h"
#include "nmrf/files.h"
#include "nmrf/sequence.h"

namespace nmrf::cli {
namespace {

namespace fs = std::filesystem;

struct Frame {
  Image left, right;
  FloatMap truth;           // px
  FloatMap past_x, past_y;  // where the point was, relative to the pixel, px; NaN: unknown
};

// Middlebury's flow format.
void read_flow(const fs::path& path, FloatMap& x, FloatMap& y) {
  const std::string bytes = read_file(path);
  struct Header {
    float magic;
    std::int32_t width, height;
  } header;
  check(bytes.size() >= sizeof header, ErrorKind::kInput, "{}: is too short for a flow file",
        path.string());
  std::memcpy(&header, bytes.data(), sizeof header);
  check(header.magic == 202021.25f && header.width > 0 && header.height > 0 &&
            bytes.size() == sizeof header + 8 * static_cast<std::size_t>(header.width) *
                                                static_cast<std::size_t>(header.height),
        ErrorKind::kInput, "{}: is no flow file, or is not whole", path.string());
  x = FloatMap(header.width, header.height);
  y = x;
  for (std::size_t i = 0; i < x.size(); ++i) {
    float both[2];
    std::memcpy(both, bytes.data() + sizeof header + 8 * i, sizeof both);
    const bool known = std::abs(both[0]) < 1e9f;
    x.data()[i] = known ? both[0] : std::numeric_limits<float>::quiet_NaN();
    y.data()[i] = both[1];
  }
}

// Folders of left images, one per sequence.
std::vector<fs::path> find_sequences(const fs::path& root) {
  const fs::path images = root / "FlyingThings3D" / "frames_finalpass";
  check(fs::is_directory(images), ErrorKind::kInput,
        "{}: holds no sequences; make some with nmrf synth {} --pairs 4 --frames 10", root.string(),
        root.string());
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(images))
    if (entry.is_directory() && entry.path().filename() == "left") found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<Frame> load(const fs::path& root, const fs::path& left) {
  const fs::path base = root / "FlyingThings3D";
  const fs::path place = fs::relative(left.parent_path(), base / "frames_finalpass");
  std::vector<fs::path> names;
  for (const auto& entry : fs::directory_iterator(left)) names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  std::vector<Frame> frames;
  for (const fs::path& name : names) {
    Frame frame;
    auto with = [&](const char* ending) { return name.string() + ending; };
    frame.left = to_rgb8(read_image(left / with(".png")));
    frame.right = to_rgb8(read_image(left.parent_path() / "right" / with(".png")));
    frame.truth = read_disparity(base / "disparity" / place / "left" / with(".pfm"));
    const fs::path flow = base / "optical_flow" / place / "into_past" / "left" / with(".flo");
    if (!frames.empty()) read_flow(flow, frame.past_x, frame.past_y);
    frames.push_back(std::move(frame));
  }
  return frames;
}

// The figures of one way of matching.
struct Figures {
  double error = 0, bad1 = 0, bad3 = 0, pixels = 0;  // of the frames after the first
  double change = 0, points = 0;                     // see add()
  double still_change = 0, still_points = 0;
  double first_error = 0, first_pixels = 0;  // of the first frames
  std::vector<double> seconds;

  // The temporal noise of a point is how much its disparity changed besides the change of its
  // truth. Still points moved by less than half a pixel, and their truth by less than a tenth.
  void add(const Frame& frame, const Frame* before, const FloatMap& map, const FloatMap* old) {
    for (int y = 0; y < map.height(); ++y)
      for (int x = 0; x < map.width(); ++x) {
        const float wanted = frame.truth.at(y, x);
        if (!std::isfinite(wanted)) continue;
        const double off = std::min<double>(std::abs(map.at(y, x) - wanted), 100);
        if (!before) {
          first_error += off;
          ++first_pixels;
          continue;
        }
        error += off;
        bad1 += off > 1;
        bad3 += off > 3;
        ++pixels;
        const float u = frame.past_x.at(y, x), v = frame.past_y.at(y, x);
        if (!std::isfinite(u)) continue;
        const int column = static_cast<int>(std::lround(static_cast<float>(x) + u)),
                  row = static_cast<int>(std::lround(static_cast<float>(y) + v));
        const double truth_change = wanted - before->truth.at(row, column),
                     noise = std::abs(map.at(y, x) - old->at(row, column) - truth_change);
        change += std::min(noise, 100.0);
        ++points;
        if (std::hypot(u, v) > 0.5f || std::abs(truth_change) > 0.1) continue;
        still_change += std::min(noise, 100.0);
        ++still_points;
      }
  }

  nlohmann::json to_json() const {
    auto mean = [](double sum, double count) { return count > 0 ? sum / count : 0; };
    std::vector<double> sorted = seconds;
    return {{"seconds", quantile(sorted, 0.5)},
            {"epe", mean(error, pixels)},
            {"bad1", 100 * mean(bad1, pixels)},
            {"bad3", 100 * mean(bad3, pixels)},
            {"noise", mean(change, points)},
            {"still_noise", mean(still_change, still_points)},
            {"first_epe", mean(first_error, first_pixels)}};
  }
};

}  // namespace

int run_sequences(const SequenceSettings& s) {
  const Matcher matcher = Matcher::load(s.model, s.matcher);
  MatchOptions how;
  how.scale = s.scale;
  how.full_size = true;
  auto folders = find_sequences(s.folder);
  folders.resize(std::min(folders.size(), s.count));
  watch_interrupts();
  ProgressLine progress(!s.quiet);

  Figures single, video;
  Sequence sequence(matcher, how);
  int cuts = 0, noticed = 0, lost = 0;
  Disparity alone, kept;
  for (std::size_t i = 0; i < folders.size(); ++i) {
    const std::vector<Frame> frames = load(s.folder, folders[i]);
    FloatMap old_alone, old_kept;
    for (std::size_t f = 0; f < frames.size(); ++f) {
      if (interrupted()) return kExitInterrupted;
      progress.show(
          fmt::format("sequence {}/{}, frame {}/{}", i + 1, folders.size(), f + 1, frames.size()));
      auto timed = [&](Figures& figures, const auto& match) {
        const auto start = std::chrono::steady_clock::now();
        match();
        if (f > 0)
          figures.seconds.push_back(
              std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      };
      timed(single, [&] { matcher.match(frames[f].left, frames[f].right, how, alone); });
      timed(video, [&] { sequence.next(frames[f].left, frames[f].right, kept); });
      if (f == 0 && i > 0) {
        ++cuts;
        noticed += !sequence.continued();
      }
      lost += f > 0 && !sequence.continued();
      const Frame* before = f > 0 ? &frames[f - 1] : nullptr;
      single.add(frames[f], before, alone.map, &old_alone);
      video.add(frames[f], before, kept.map, &old_kept);
      old_alone = alone.map;
      old_kept = kept.map;
    }
  }
  progress.clear();
  const nlohmann::json a = single.to_json(), b = video.to_json();
  const nlohmann::json report{
      {"sequences", folders.size()}, {"frame_by_frame", a}, {"video", b}, {"cuts", cuts},
      {"noticed", noticed},          {"lost", lost}};
  std::vector<std::vector<std::string>> cells{{"", "s per frame", "EPE, px", "bad 1, %", "bad 3, %",
                                               "noise, px", "noise, still, px",
                                               "EPE after a cut, px"}};
  for (const auto& [name, values] : {std::pair("frame by frame", &a), std::pair("video", &b)}) {
    std::vector<std::string> row{name};
    for (const char* key : {"seconds", "epe", "bad1", "bad3", "noise", "still_noise", "first_epe"})
      row.push_back(fmt::format("{:.3f}", values->at(key).get<double>()));
    cells.push_back(row);
  }
  std::vector<std::string> ratio{"ratio"};
  for (const char* key : {"seconds", "epe", "bad1", "bad3", "noise", "still_noise", "first_epe"})
    ratio.push_back(
        fmt::format("{:.3f}", b.at(key).get<double>() / std::max(1e-9, a.at(key).get<double>())));
  cells.push_back(ratio);
  print_study(s,
              fmt::format("{} sequences; {} of {} cuts detected, {} false detections\n{}s per "
                          "frame: median, without "
                          "the first frame of a sequence; noise: mean frame-to-frame change of a "
                          "point's disparity\n  "
                          "beyond that of its truth; still: points that hardly move",
                          folders.size(), noticed, cuts, lost, text_table(cells, 1)),
              report);
  return 0;
}

}  // namespace nmrf::cli
