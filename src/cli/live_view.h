// The window of `nmrf match --camera`: photo and map side by side, with size and frame rate.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>

#include "io/window.h"
#include "nmrf/image.h"

namespace nmrf::cli {

class LiveView {
 public:
  // wished: as the user said; nothing: where it can be had, for a camera. Throws Error(kUsage) when
  // a window is wished for and cannot be had.
  LiveView(std::optional<bool> wished, bool camera);
  bool open() const { return window_ != nullptr; }
  // The user has closed it.
  bool closed() const { return closed_; }
  // Both 8-bit RGB; the map is shown at its own size.
  void show(const Image& photo, const Image& map);

 private:
  std::unique_ptr<PictureWindow> window_;
  bool closed_ = false;
  std::deque<std::chrono::steady_clock::time_point> shown_;  // the last frames
};

}  // namespace nmrf::cli
