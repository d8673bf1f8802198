#include "plot/run_log.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "core/check.h"
#include "core/fields.h"
#include "core/file.h"
#include "core/log.h"
#include "io/toml.h"

namespace nmrf {
namespace fs = std::filesystem;

namespace {

constexpr const char* kLogName = "log.jsonl";

// Updates done when the second and later stages of the run's settings begin.
std::vector<std::int64_t> stage_starts(const fs::path& config) {
  std::vector<std::int64_t> starts;
  if (!fs::exists(config)) return starts;
  nlohmann::json settings;
  try {
    settings = read_toml(config.string());
  } catch (const Error& error) {
    log_warning("{}; the stages are not marked", error.what());
    return starts;
  }
  std::int64_t done = 0;
  for (int i = 1;; ++i) {
    const auto stage = settings.find("stage" + std::to_string(i));
    if (stage == settings.end() || !stage->is_object()) break;
    const auto steps = stage->find("steps");
    if (steps == stage->end() || !steps->is_number_integer() || steps->get<std::int64_t>() <= 0)
      continue;
    if (done > 0) starts.push_back(done);
    done += steps->get<std::int64_t>();
  }
  return starts;
}

}  // namespace

JsonLog::JsonLog(const fs::path& folder, std::int64_t keep_until) {
  make_folder(folder);
  const fs::path path = folder / kLogName;
  if (fs::exists(path)) {
    std::ifstream old(path);
    std::string line, kept;
    while (std::getline(old, line)) {
      auto object = nlohmann::json::parse(line, nullptr, false);
      if (object.is_object() && object.value("step", std::int64_t{0}) <= keep_until)
        kept += line + "\n";
    }
    write_file(path, kept);
  }
  file_ = std::fopen(path.c_str(), "ab");
  check(file_ != nullptr, ErrorKind::kFailure, "{}: cannot be written: {}", path.string(),
        std::strerror(errno));
}

JsonLog::~JsonLog() { std::fclose(file_); }

void JsonLog::write(const nlohmann::json& object) {
  const std::string line = object.dump() + "\n";
  const bool written =
      std::fwrite(line.data(), 1, line.size(), file_) == line.size() && std::fflush(file_) == 0;
  if (written || complained_) return;
  complained_ = true;
  log_warning("{}: writing failed: {}. The run goes on; its log will have gaps.", kLogName,
              std::strerror(errno));
}

RunLog read_run_log(const fs::path& run) {
  check(fs::exists(run), ErrorKind::kInput,
        "{}: is not there; expected the folder of a run (-o of nmrf train) or its {}", run.string(),
        kLogName);
  const bool folder = fs::is_directory(run);
  const fs::path path = folder ? run / kLogName : run;
  check(fs::exists(path), ErrorKind::kInput,
        "{}: has no {}; expected the folder of a run (-o of nmrf train)", run.string(), kLogName);
  const fs::path home = fs::absolute(path).lexically_normal().parent_path();
  RunLog log;
  log.name =
      folder || path.filename() == kLogName ? home.filename().string() : path.filename().string();
  std::istringstream lines(read_file(path));
  std::size_t number = 0, unreadable = 0, first_bad = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.empty()) continue;
    const auto object = nlohmann::json::parse(line, nullptr, false);
    const auto step = object.is_object() ? object.find("step") : object.end();
    if (!object.is_object() || step == object.end() || !step->is_number()) {
      // The last line of a run that goes on may not be complete yet.
      if (lines.eof() && line.starts_with('{')) break;
      if (unreadable++ == 0) first_bad = number;
      continue;
    }
    auto& curves = object.contains("validation") ? log.validation : log.train;
    for (const auto& [name, value] : object.items())
      if (value.is_number() && name != "step")
        curves[name].emplace_back(step->get<double>(), value.get<double>());
  }
  if (unreadable > 0 && !(log.train.empty() && log.validation.empty()))
    log_warning("{}: {} lines are no log entries and were passed over, the first is line {}",
                path.string(), unreadable, first_bad);
  check(unreadable == 0 || !log.train.empty() || !log.validation.empty(), ErrorKind::kInput,
        "{}: is not the log of a run: none of its {} lines is an entry such as {{\"step\": 20, "
        "\"loss\": 1.5}}. Name the folder of a run (-o of nmrf train) or its {}.",
        path.string(), number, kLogName);
  check(!log.train.empty() || !log.validation.empty(), ErrorKind::kInput,
        "{}: holds no entry yet; expected lines such as {{\"step\": 20, \"loss\": 1.5}}. A run "
        "writes one every train.log_every updates.",
        path.string());
  log.stage_starts = stage_starts(home / "config.toml");
  return log;
}

}  // namespace nmrf
