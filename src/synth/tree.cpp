#include "synth/tree.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cmath>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "core/check.h"
#include "core/file.h"
#include "core/rng.h"
#include "data/mats.h"
#include "io/toml.h"
#include "nmrf/disparity.h"

namespace nmrf {
namespace fs = std::filesystem;
namespace {

constexpr int kFrames = 10;  // per sequence, numbered from 6 as in FlyingThings3D
constexpr int kFirstFrame = 6;
constexpr std::int64_t kSequences = 10000;  // per letter: four digits
constexpr std::int64_t kMostPairs = 26 * kSequences * kFrames;

// Every file of a pair.
struct PairFiles {
  PairFiles(const fs::path& base, const SynthPlace& place) {
    for (int eye = 0; eye < 2; ++eye) {
      const char* side = eye == 0 ? "left" : "right";
      image[eye] = base / "frames_finalpass" / place.sequence / side / (place.frame + ".png");
      disparity[eye] = base / "disparity" / place.sequence / side / (place.frame + ".pfm");
      objects[eye] = base / "object_index" / place.sequence / side / (place.frame + ".pfm");
      occlusion[eye] = base / "occlusion" / place.sequence / side / (place.frame + ".png");
    }
    surfaces = base / "material_index" / place.sequence / "left" / (place.frame + ".png");
    past = base / "optical_flow" / place.sequence / "into_past" / "left" / (place.frame + ".flo");
    calibration = base / "calib" / place.sequence / (place.frame + ".txt");
  }
  bool complete() const {
    for (int eye = 0; eye < 2; ++eye)
      for (const fs::path* path : {&image[eye], &disparity[eye], &objects[eye], &occlusion[eye]})
        if (!fs::exists(*path)) return false;
    return fs::exists(calibration);
  }
  std::array<fs::path, 2> image, disparity, objects, occlusion;
  fs::path surfaces, past, calibration;
};

// Middlebury's flow format: from a pixel to where its point was; above 1e9 where unknown.
void write_flow(const fs::path& path, const cv::Mat& places) {
  AtomicFile file(path);
  const float magic = 202021.25f;
  const std::int32_t size[2] = {places.cols, places.rows};
  file.write(&magic, sizeof magic);
  file.write(size, sizeof size);
  std::vector<float> row(2 * static_cast<std::size_t>(places.cols));
  for (int y = 0; y < places.rows; ++y) {
    for (int x = 0; x < places.cols; ++x) {
      const auto& place = places.at<cv::Vec2f>(y, x);
      const bool known = std::isfinite(place[0]);
      const auto at = 2 * static_cast<std::size_t>(x);
      row[at] = known ? place[0] - static_cast<float>(x) : 1e10f;
      row[at + 1] = known ? place[1] - static_cast<float>(y) : 1e10f;
    }
    file.write(row.data(), row.size() * sizeof(float));
  }
  file.commit();
}

std::string calibration_text(const Calibration& c, double max_disp) {
  std::string camera =
      fmt::format("[{:.6f} 0 {:.6f}; 0 {:.6f} {:.6f}; 0 0 1]", c.fx, c.cx, c.fy, c.cy);
  return fmt::format("cam0={}\ncam1={}\ndoffs=0\nbaseline={:.6f}\nwidth={}\nheight={}\nndisp={}\n",
                     camera, camera, 1000 * c.baseline, c.width, c.height,
                     static_cast<int>(max_disp) + 1);
}

void write_pair(const PairFiles& files, const SynthPair& pair, double max_disp) {
  const cv::Mat* images[] = {&pair.left, &pair.right};
  const cv::Mat* disparities[] = {&pair.left_disparity, &pair.right_disparity};
  const cv::Mat* objects[] = {&pair.left_objects, &pair.right_objects};
  const cv::Mat* occlusions[] = {&pair.left_occluded, &pair.right_occluded};
  for (std::size_t eye = 0; eye < 2; ++eye) {
    for (const fs::path* path :
         {&files.image[eye], &files.disparity[eye], &files.objects[eye], &files.occlusion[eye]})
      make_folder(path->parent_path());
    write_mat(files.image[eye], *images[eye]);
    write_disparity_mat(files.disparity[eye], *disparities[eye]);
    cv::Mat ids;
    objects[eye]->convertTo(ids, CV_32F);  // exact below 2^24 objects
    write_disparity_mat(files.objects[eye], ids);
    write_mat(files.occlusion[eye], *occlusions[eye]);
  }
  make_folder(files.surfaces.parent_path());
  write_mat(files.surfaces, pair.left_surfaces);
  if (!pair.left_past.empty()) {
    make_folder(files.past.parent_path());
    write_flow(files.past, pair.left_past);
  }
  make_folder(files.calibration.parent_path());
  write_file(files.calibration, calibration_text(pair.calibration, max_disp));
}

// The settings lie beside the pairs; a folder never mixes two kinds.
void keep_settings(const SynthOptions& options, const fs::path& path) {
  nlohmann::json wanted = to_json_object(options);
  if (!fs::exists(path)) {
    write_file(path, to_toml(wanted));
    return;
  }
  SynthOptions found;
  from_json_object(found, read_toml(path.string()), path.string());
  nlohmann::json there = to_json_object(found);
  if (there == wanted) return;
  std::string changed;
  for (const auto& step : nlohmann::json::diff(there, wanted)) {
    std::string key = step["path"].get<std::string>().substr(1);
    changed += (changed.empty() ? "" : ", ") + key;
  }
  fail(ErrorKind::kUsage,
       "{}: this folder was begun with other settings ({}). Take the same ones, or another folder.",
       path.string(), changed);
}

// No scene of one split is in the other.
std::uint64_t split_seed(std::int64_t seed, const std::string& split) {
  const auto own = static_cast<std::uint64_t>(seed);
  constexpr std::uint64_t kTest = 0x54455354;
  return split == "TEST" ? mix_seed({own, kTest}) : own;
}

}  // namespace

SynthPlace synth_place(const std::string& split, std::int64_t index) {
  check(index >= 0 && index < kMostPairs, ErrorKind::kUsage,
        "pair {} does not fit into the tree; expected 0 to {}", index, kMostPairs - 1);
  std::int64_t sequence = index / kFrames;
  SynthPlace place;
  place.sequence = fs::path(split) /
                   std::string(1, static_cast<char>('A' + sequence / kSequences)) /
                   fmt::format("{:04}", sequence % kSequences);
  place.frame = fmt::format("{:04}", kFirstFrame + index % kFrames);
  return place;
}

SynthPlace sequence_place(const std::string& split, std::int64_t sequence, int frame) {
  SynthPlace place = synth_place(split, sequence * kFrames);
  place.frame = fmt::format("{:04}", kFirstFrame + frame);
  return place;
}

SynthTreeResult write_synth_tree(const SynthOptions& options, const SynthTree& tree) {
  options.validate();
  check(tree.pairs > 0 && tree.pairs <= kMostPairs, ErrorKind::kUsage,
        "cannot write {} pairs; expected 1 to {}", tree.pairs, kMostPairs);
  check(tree.frames >= 1 && tree.frames <= 9000 &&
            (tree.frames == 1 || tree.pairs <= kMostPairs / kFrames),
        ErrorKind::kUsage, "cannot write {} sequences of {} frames; expected up to {} of 1 to 9000",
        tree.pairs, tree.frames, kMostPairs / kFrames);
  check(tree.split == "TRAIN" || tree.split == "TEST", ErrorKind::kUsage,
        "unknown split '{}'; expected TRAIN or TEST", tree.split);
  fs::path base = tree.folder / "FlyingThings3D";
  make_folder(base);
  const std::uint64_t seed = split_seed(options.seed, tree.split);
  keep_settings(options, base / ("synth_" + tree.split + ".toml"));

  int threads =
      tree.threads > 0 ? tree.threads : static_cast<int>(std::thread::hardware_concurrency());
  threads = static_cast<int>(std::clamp<std::int64_t>(threads, 1, tree.pairs));
  std::atomic<std::int64_t> next{0};
  std::atomic<bool> ended{false};
  std::mutex mutex;
  SynthTreeResult result;
  std::exception_ptr error;
  auto work = [&] {
    try {
      while (!ended) {
        std::int64_t index = next++;
        if (index >= tree.pairs) return;
        // A sequence is complete when its last frame is.
        const bool sequence = tree.frames > 1;
        PairFiles files(base, sequence ? sequence_place(tree.split, index, tree.frames - 1)
                                       : synth_place(tree.split, index));
        bool there = files.complete();
        if (!there) {
          if (tree.stop) {
            std::lock_guard lock(mutex);
            if (ended || tree.stop()) {
              ended = true;
              return;
            }
          }
          if (sequence)
            render_sequence(options, seed, index, tree.frames,
                            [&](int frame, const SynthPair& pair) {
                              write_pair({base, sequence_place(tree.split, index, frame)}, pair,
                                         options.max_disp);
                            });
          else
            write_pair(files, render_pair(options, seed, index), options.max_disp);
        }
        std::lock_guard lock(mutex);
        ++(there ? result.skipped : result.written);
        if (tree.progress) tree.progress(result.written + result.skipped, tree.pairs);
      }
    } catch (...) {
      std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
      ended = true;
    }
  };
  std::vector<std::thread> workers;
  for (int i = 1; i < threads; ++i) workers.emplace_back(work);
  work();
  for (auto& worker : workers) worker.join();
  if (error) std::rethrow_exception(error);
  return result;
}

}  // namespace nmrf
