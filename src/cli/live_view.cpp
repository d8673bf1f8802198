#include "cli/live_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/log.h"
#include "nmrf/error.h"

namespace nmrf::cli {
namespace {

constexpr std::size_t kFrames = 10;  // that the frame rate is the mean of

void put(const Image& from, int column, Image& to) {
  for (int y = 0; y < from.height(); ++y)
    std::memcpy(to.row(y) + 3 * column, from.row(y), 3 * static_cast<std::size_t>(from.width()));
}

}  // namespace

LiveView::LiveView(std::optional<bool> wished, bool camera) {
  if (!wished.value_or(camera)) return;
  try {
    window_ = open_window("nmrf");
  } catch (const Error& error) {
    if (wished) throw;
    log_info("{}; Ctrl-C ends", error.what());
  }
}

void LiveView::show(const Image& photo, const Image& map) {
  if (!window_ || closed_) return;
  Image both(photo.width() + map.width(), std::max(photo.height(), map.height()));
  std::memset(both.data(), 0, both.row_bytes() * static_cast<std::size_t>(both.height()));
  put(photo, 0, both);
  put(map, photo.width(), both);
  shown_.push_back(std::chrono::steady_clock::now());
  if (shown_.size() > kFrames + 1) shown_.pop_front();
  std::string line = fmt::format("{}x{}", photo.width(), photo.height());
  if (shown_.size() > 1) {
    const std::chrono::duration<double> time = shown_.back() - shown_.front();
    line += fmt::format(", {:.1f} frames per second",
                        static_cast<double>(shown_.size() - 1) / std::max(time.count(), 1e-9));
  }
  closed_ = !window_->show(both, line + " - q ends");
}

}  // namespace nmrf::cli
