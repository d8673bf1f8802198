#include "io/video.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "core/file.h"
#include "io/module.h"
#include "nmrf/version.h"

namespace nmrf {
namespace fs = std::filesystem;

namespace {

std::unique_ptr<VideoReader> open_by_module(const std::string& path, const std::string& name,
                                            const std::vector<fs::path>& folders) {
  auto* entry =
      reinterpret_cast<VideoEntry*>(load_module_entry(kVideoModule, kVideoEntry, name, folders));
  char message[512] = "";
  std::unique_ptr<VideoReader> reader(entry(path.c_str(), NMRF_VERSION, message, sizeof message));
  check(reader != nullptr, ErrorKind::kInput, "{}: {}", name, message);
  return reader;
}

}  // namespace

std::unique_ptr<VideoReader> open_video(const fs::path& path,
                                        const std::vector<fs::path>& folders) {
  std::error_code ignored;
  check(fs::is_regular_file(path, ignored), ErrorKind::kInput, "{}: there is no such video",
        path.string());
  return open_by_module(path.string(), path.string(), folders);
}

std::unique_ptr<VideoReader> open_camera(const std::string& camera) {
  return open_by_module(kCameraPrefix + camera, "camera " + camera, module_folders());
}

struct DisparityVideo::State {
  State(const fs::path& path, int wide, int high) : file(path), width(wide), height(high) {}
  AtomicFile file;
  int width, height;
  std::unique_ptr<VideoWriter> writer;
  std::vector<std::uint16_t> values;
};

DisparityVideo::DisparityVideo(const fs::path& path, int width, int height, double frame_rate) {
  check(width > 0 && height > 0 && frame_rate > 0 && frame_rate < 1e5, ErrorKind::kUsage,
        "{}: a video of {}x{} pixels and {} frames per second cannot be written", path.string(),
        width, height, frame_rate);
  auto* entry = reinterpret_cast<VideoWriterEntry*>(
      load_module_entry(kVideoModule, kVideoWriterEntry, path.string(), module_folders()));
  state_ = std::make_unique<State>(path, width, height);
  char message[512] = "";
  state_->writer.reset(entry(state_->file.temporary().c_str(), width, height, frame_rate,
                             NMRF_VERSION, message, sizeof message));
  check(state_->writer != nullptr, ErrorKind::kFailure, "{}: {}", path.string(), message);
}

DisparityVideo::~DisparityVideo() = default;

void DisparityVideo::write(const FloatMap& disparity) {
  check(disparity.width() == state_->width && disparity.height() == state_->height,
        ErrorKind::kUsage, "a frame of {}x{} in a video of {}x{}", disparity.width(),
        disparity.height(), state_->width, state_->height);
  state_->values.resize(disparity.size());
  std::transform(disparity.begin(), disparity.end(), state_->values.begin(), [](float d) {
    if (!std::isfinite(d)) return std::uint16_t{0};
    return static_cast<std::uint16_t>(std::clamp(std::lround(256.0 * d), 1L, 65535L));
  });
  state_->writer->write(state_->values.data());
}

void DisparityVideo::finish() {
  state_->writer->finish();
  state_->writer.reset();
  state_->file.commit();
}

std::unique_ptr<VideoReader> open_video(const fs::path& path) {
  return open_video(path, module_folders());
}

}  // namespace nmrf
