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
#include "nmrf/map.h"

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

// Disparities as a lossless 16-bit video (FFV1 in Matroska): 256 x disparity, 0 = unknown, as in
// 16-bit PNG files. Appears under its name when it is finished.
class DisparityVideo {
 public:
  // Throws Error(kUsage) when the module is missing or the size or rate makes no sense, and
  // Error(kFailure) when the file cannot be written.
  DisparityVideo(const std::filesystem::path& path, int width, int height, double frame_rate);
  ~DisparityVideo();
  // Throws Error(kUsage) for a map of another size.
  void write(const FloatMap& disparity);
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Throws Error(kInput) when there is no such file or it is no video, Error(kUsage) when the module
// is in none of the folders, saying what to install.
std::unique_ptr<VideoReader> open_video(const std::filesystem::path& path,
                                        const std::vector<std::filesystem::path>& folders);
std::unique_ptr<VideoReader> open_video(const std::filesystem::path& path);
// A camera of this machine by its number, from 0 on, or one of a network by its address. Throws as
// open_video() does.
std::unique_ptr<VideoReader> open_camera(const std::string& camera);

// The functions of the module, and their names. Both return nothing, and a sentence in `message`,
// when the video cannot be opened or `version` (of nmrf) is not the module's own. A path that
// begins with kCameraPrefix names a camera by its number or address.
inline constexpr const char* kVideoModule = "nmrf-video.so";
inline constexpr const char* kCameraPrefix = "camera:";
inline constexpr const char* kVideoEntry = "nmrf_open_video";
using VideoEntry = VideoReader*(const char* path, const char* version, char* message,
                                std::size_t message_bytes);
class VideoWriter {
 public:
  virtual ~VideoWriter() = default;
  virtual void write(const std::uint16_t* values) = 0;  // [height, width]
  virtual void finish() = 0;
};
inline constexpr const char* kVideoWriterEntry = "nmrf_create_video";
using VideoWriterEntry = VideoWriter*(const char* path, int width, int height, double rate,
                                      const char* version, char* message,
                                      std::size_t message_bytes);

}  // namespace nmrf
