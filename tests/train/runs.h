// Starting the real command for training runs, and reading what they leave.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace nmrf::test {

// A tiny network on the pairs of `list`; `more` is appended.
void write_config(const std::filesystem::path& path, const std::filesystem::path& list,
                  const std::string& more);
// 4 updates of the features, then 8 of everything; a checkpoint every 3.
extern const char* const kShort;

struct Launch {
  std::filesystem::path output = {};     // where stdout and stderr go; empty: nowhere
  std::vector<std::string> before = {};  // e.g. {"ip", "netns", "exec", "name"}
  std::function<void()> in_child = {};   // called before the command takes over
};

// nmrf ARGUMENTS... with one thread; `finish` waits for its exit code (128 + signal when killed).
pid_t start(const std::vector<std::string>& arguments, const Launch& launch = {});
int finish(pid_t child);
int run(const std::vector<std::string>& arguments, const Launch& launch = {});

// All numbers of every tensor of a model.
std::map<std::string, std::vector<float>> weights(const std::filesystem::path& path);
std::vector<nlohmann::json> log_of(const std::filesystem::path& folder);

}  // namespace nmrf::test
