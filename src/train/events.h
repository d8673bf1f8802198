// Logs of a run: JSON lines, and event files that TensorBoard reads.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <opencv2/core.hpp>
#include <string>

namespace nmrf {

// CRC-32C (Castagnoli), as event files use it.
std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t start = 0);

// A TensorBoard event file; appends, one record an event.
class EventFile {
 public:
  // Creates `folder`/events.out.tfevents.<seconds>.<host>.
  explicit EventFile(const std::filesystem::path& folder);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  void scalar(std::int64_t step, const std::string& tag, double value);
  void picture(std::int64_t step, const std::string& tag, const cv::Mat& bgr);
  void flush();
  const std::filesystem::path& path() const { return path_; }

 private:
  void record(const std::string& payload);
  std::filesystem::path path_;
  std::FILE* file_ = nullptr;
};

// `folder`/log.jsonl: one object a line. On a resumed run, lines of steps after `keep_until` are
// cut, so that the log is that of an undisturbed run.
class JsonLog {
 public:
  JsonLog(const std::filesystem::path& folder, std::int64_t keep_until);
  ~JsonLog();
  JsonLog(const JsonLog&) = delete;
  JsonLog& operator=(const JsonLog&) = delete;
  void write(const nlohmann::json& object);

 private:
  std::FILE* file_ = nullptr;
};

}  // namespace nmrf
