// A window through OpenCV.
#include "io/window.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <opencv2/highgui.hpp>
#include <opencv2/imgproc.hpp>

#include "nmrf/opencv.h"
#include "nmrf/version.h"

namespace nmrf {
namespace {

constexpr int kMostWidth = 1800;  // px, of a picture on the screen

bool has_text(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value;
}

// Toolkits end the process when a display that is named cannot be reached.
bool display_answers() {
  if (has_text("WAYLAND_DISPLAY")) return true;
  if (!has_text("DISPLAY")) return false;
  void* x11 = ::dlopen("libX11.so.6", RTLD_NOW | RTLD_LOCAL);
  if (!x11) return true;  // it is not asked for then
  auto* open = reinterpret_cast<void* (*)(const char*)>(::dlsym(x11, "XOpenDisplay"));
  auto* close = reinterpret_cast<int (*)(void*)>(::dlsym(x11, "XCloseDisplay"));
  void* display = open ? open(nullptr) : nullptr;
  if (display && close) close(display);
  return display != nullptr;
}

class HighguiWindow : public PictureWindow {
 public:
  explicit HighguiWindow(const char* title) : title_(title) {
    cv::namedWindow(title_, cv::WINDOW_AUTOSIZE | cv::WINDOW_GUI_NORMAL);
  }
  ~HighguiWindow() override {
    try {
      cv::destroyWindow(title_);
    } catch (const cv::Exception&) {  // the user was faster
    }
  }

  bool show(const Image& picture, const std::string& line) override {
    try {
      cv::cvtColor(mat(const_cast<Image&>(picture)), shown_, cv::COLOR_RGB2BGR);
      const double scale = static_cast<double>(kMostWidth) / shown_.cols;
      if (scale < 1) cv::resize(shown_, shown_, {}, scale, scale, cv::INTER_AREA);
      write(line);
      cv::imshow(title_, shown_);
      const int key = cv::waitKey(1) & 255;
      constexpr int kEscape = 27;
      return key != 'q' && key != kEscape &&
             cv::getWindowProperty(title_, cv::WND_PROP_VISIBLE) >= 1;
    } catch (const cv::Exception& error) {
      throw Error(ErrorKind::kFailure, "the window cannot be drawn: " + error.err);
    }
  }

 private:
  void write(const std::string& line) {
    const double size = std::clamp(shown_.cols / 1600.0, 0.4, 1.0);
    const cv::Point at(8, shown_.rows - 10);
    for (const auto& [colour, width] :
         {std::pair(cv::Scalar::all(0), 4), {cv::Scalar::all(255), 1}})
      cv::putText(shown_, line, at, cv::FONT_HERSHEY_SIMPLEX, size, colour, width, cv::LINE_AA);
  }

  std::string title_;
  cv::Mat shown_;
};

}  // namespace
}  // namespace nmrf

extern "C" NMRF_API nmrf::PictureWindow* nmrf_open_window(const char* title, const char* version,
                                                          char* message,
                                                          std::size_t message_bytes) {
  if (std::strcmp(version, NMRF_VERSION) != 0) {
    std::snprintf(message, message_bytes,
                  "the module for windows is of version %s, nmrf of version %s. Install both from "
                  "one build.",
                  NMRF_VERSION, version);
    return nullptr;
  }
  if (!nmrf::display_answers()) {
    std::snprintf(message, message_bytes, "there is no display here");
    return nullptr;
  }
  try {
    return new nmrf::HighguiWindow(title);
  } catch (const std::exception& error) {
    std::snprintf(message, message_bytes, "%s", error.what());
    return nullptr;
  }
}
