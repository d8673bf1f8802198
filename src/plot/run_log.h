// The log of a run, `log.jsonl`: written line by line, read back as curves. No tensors here.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <opencv2/core.hpp>
#include <string>
#include <vector>

namespace nmrf {

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
  bool complained_ = false;
};

// (update, value), in the order of the log.
using Curve = std::vector<cv::Point2d>;

struct RunLog {
  std::string name;  // of the run's folder
  std::map<std::string, Curve> train, validation;
  std::vector<std::int64_t> stage_starts;  // updates done when stages 2, 3, ... begin
};

// `run` is a run's folder or a log file. A last line that is still being written is passed over,
// as are values that are no numbers. Stages come from the config.toml beside the log. Throws
// Error(kInput) when there is no log or nothing in it.
RunLog read_run_log(const std::filesystem::path& run);

}  // namespace nmrf
