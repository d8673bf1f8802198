// Event files that TensorBoard reads.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <opencv2/core.hpp>
#include <string>

namespace nmrf::train {

// CRC-32C (Castagnoli), as event files use it.
std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t start = 0);

// A TensorBoard event file; appends, one record per event.
class EventFile {
 public:
  // Creates `folder`/events.out.tfevents.<seconds>.<host>. On a resumed run, events of steps after
  // `keep_until` are cut from the files that are there, so that no curve is drawn twice. The new
  // file sorts behind them, whatever the clock says.
  explicit EventFile(const std::filesystem::path& folder, std::int64_t keep_until = INT64_MAX);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  void scalar(std::int64_t step, const std::string& tag, double value);
  void picture(std::int64_t step, const std::string& tag, const cv::Mat& bgr);
  void flush();
  const std::filesystem::path& path() const { return path_; }

 private:
  void record(const std::string& payload);
  void complain();
  std::filesystem::path path_;
  bool complained_ = false;
  std::FILE* file_ = nullptr;
};

}  // namespace nmrf::train
