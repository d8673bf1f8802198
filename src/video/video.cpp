// Videos through OpenCV.
#include "io/video.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <opencv2/core/utils/logger.hpp>
#include <opencv2/imgproc.hpp>
#include <opencv2/videoio.hpp>

#include "nmrf/error.h"
#include "nmrf/opencv.h"
#include "nmrf/version.h"

namespace nmrf {
namespace {

// Keeps OpenCV from printing while it lives.
class QuietOpenCv {
 public:
  QuietOpenCv() : before_(cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT)) {}
  ~QuietOpenCv() { cv::utils::logging::setLogLevel(before_); }
  QuietOpenCv(const QuietOpenCv&) = delete;
  QuietOpenCv& operator=(const QuietOpenCv&) = delete;

 private:
  cv::utils::logging::LogLevel before_;
};

class OpenCvReader : public VideoReader {
 public:
  explicit OpenCvReader(const char* path) : path_(path) {
    QuietOpenCv quiet;  // every backend that cannot read it would complain on stderr
    if (path_.starts_with(kCameraPrefix)) {
      const std::string camera = path_.substr(std::strlen(kCameraPrefix));
      if (camera.find_first_not_of("0123456789") == std::string::npos)
        capture_.open(std::atoi(camera.c_str()));
      else
        capture_.open(camera);
    } else if (capture_.open(path_)) {
      capture_.set(cv::CAP_PROP_ORIENTATION_AUTO, 0);
    }
  }
  bool opened() const { return capture_.isOpened(); }

  bool next(Image& frame) override {
    try {
      if (!capture_.read(frame_) || frame_.empty()) return false;
    } catch (const cv::Exception& error) {
      throw Error(ErrorKind::kInput, path_ + ": the video cannot be decoded: " + error.err);
    }
    if (frame_.depth() != CV_8U || (frame_.channels() != 1 && frame_.channels() != 3))
      throw Error(ErrorKind::kInput, path_ + ": the frames of this video are not 8-bit images");
    if (frame.channels() != 3 || frame.bits() != 8 || frame.order() != ChannelOrder::kRgb)
      frame = Image();
    frame.resize(frame_.cols, frame_.rows);
    cv::cvtColor(frame_, mat(frame),
                 frame_.channels() == 1 ? cv::COLOR_GRAY2RGB : cv::COLOR_BGR2RGB);
    return true;
  }

  std::optional<double> frame_rate() const override {
    const double rate = capture_.get(cv::CAP_PROP_FPS);
    if (!(rate > 0 && rate < 1e6)) return std::nullopt;
    return rate;
  }

  std::optional<std::int64_t> frame_count() const override {
    const double frames = capture_.get(cv::CAP_PROP_FRAME_COUNT);
    if (!(frames >= 1 && frames < 1e12)) return std::nullopt;
    return static_cast<std::int64_t>(frames);
  }

 private:
  std::string path_;
  cv::VideoCapture capture_;
  cv::Mat frame_;
};

}  // namespace
}  // namespace nmrf

extern "C" NMRF_API nmrf::VideoReader* nmrf_open_video(const char* path, const char* version,
                                                       char* message, std::size_t message_bytes) {
  if (std::strcmp(version, NMRF_VERSION) != 0) {
    std::snprintf(message, message_bytes,
                  "the module for videos is of version %s, nmrf of version %s. Install both from "
                  "one build.",
                  NMRF_VERSION, version);
    return nullptr;
  }
  try {
    auto reader = std::make_unique<nmrf::OpenCvReader>(path);
    if (reader->opened()) return reader.release();
    if (std::string_view(path).starts_with(nmrf::kCameraPrefix)) {
      std::snprintf(message, message_bytes,
                    "cannot be opened. Is it plugged in (ls /dev/video*), free, and may you use it "
                    "(group video)? Cameras of a network are named by their address (rtsp://...).");
      return nullptr;
    }
    std::snprintf(message, message_bytes,
                  "cannot be opened as a video. Is the file whole, and was OpenCV built with a "
                  "decoder for it?");
  } catch (const std::exception& error) {
    std::snprintf(message, message_bytes, "cannot be opened as a video: %s", error.what());
  }
  return nullptr;
}
