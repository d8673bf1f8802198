// A window on the screen for pictures that follow each other. It is OpenCV's, in a module of its
// own (src/video) that is loaded when a window is opened: nothing else needs a toolkit.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "nmrf/image.h"

namespace nmrf {

class PictureWindow {
 public:
  virtual ~PictureWindow() = default;
  // Shows a picture, 8-bit RGB, with a line of text in it. False once the user has closed the
  // window or pressed q or Escape.
  virtual bool show(const Image& picture, const std::string& line) = 0;
};

// Throws Error(kUsage) when there is no display, or the module is in none of the folders of
// video_module_folders(), saying what to install.
std::unique_ptr<PictureWindow> open_window(const std::string& title);

// The function of the module, and its name: nothing, and a sentence in `message`, where there is no
// display or `version` (of nmrf) is not the module's own.
inline constexpr const char* kWindowModule = "nmrf-window.so";
inline constexpr const char* kWindowEntry = "nmrf_open_window";
using WindowEntry = PictureWindow*(const char* title, const char* version, char* message,
                                   std::size_t message_bytes);

}  // namespace nmrf
