// Frames of a video file. The decoders are OpenCV's, in a module of their own (src/video) that is
// loaded when the first video is opened: who matches pictures needs no OpenCV.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nmrf/image.h"

namespace nmrf {

class VideoReader {
 public:
  virtual ~VideoReader() = default;
  // The following frame, as stored: rotation tags are ignored, as turning would break the
  // rectification. False at the end. Throws Error(kInput).
  virtual bool next(Image& frame) = 0;
  // Frames per second, where the file tells.
  virtual std::optional<double> frame_rate() const = 0;
  // Where the file tells; it may be wrong.
  virtual std::optional<std::int64_t> frame_count() const = 0;
};

// Where the module is looked for: beside the executable, in ../lib/nmrf, and in the build tree that
// the executable lies in.
std::vector<std::filesystem::path> video_module_folders();

// Throws Error(kInput) when there is no such file or it is no video, Error(kUsage) when the module
// is in none of the folders, saying what to install.
std::unique_ptr<VideoReader> open_video(const std::filesystem::path& path,
                                        const std::vector<std::filesystem::path>& module_folders);
std::unique_ptr<VideoReader> open_video(const std::filesystem::path& path);

// The one function of the module, and its name. Returns nothing, and a sentence in `message`, when
// the video cannot be opened or `version` (of nmrf) is not the module's own.
inline constexpr const char* kVideoModule = "nmrf-video.so";
inline constexpr const char* kVideoEntry = "nmrf_open_video";
using VideoEntry = VideoReader*(const char* path, const char* version, char* message,
                                std::size_t message_bytes);

}  // namespace nmrf
