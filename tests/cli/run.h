// Running the built command and making small inputs for it.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <opencv2/core.hpp>
#include <string>
#include <vector>

#include "support/support.h"

namespace nmrf::test {

namespace fs = std::filesystem;

struct Outcome {
  int code = -1;         // exit code, or 128 + the signal that ended it
  std::string out, err;  // all of stdout and stderr
};

struct RunOptions {
  std::vector<std::string> environment = {};  // "NAME=value" added to ours
  bool terminal = false;                      // stderr is a terminal
  fs::path folder = {};                       // to run in
};

// A started command, limited to one thread.
class Process {
 public:
  explicit Process(const std::vector<std::string>& arguments, const RunOptions& options = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  void signal(int number) const;
  bool running();
  Outcome wait();

 private:
  TempFolder folder_;
  pid_t pid_ = -1;
  int terminal_ = -1;  // our end of it
  int status_ = -1;
  bool ended_ = false;
};

// nmrf ARGUMENTS..., until it ends.
Outcome nmrf(const std::vector<std::string>& arguments, const RunOptions& options = {});
// Several of them, as many at a time as there are cores; results in the order given.
std::vector<Outcome> nmrf_all(const std::vector<std::vector<std::string>>& runs);
// `match` before the arguments and the small untrained network with 64 px of disparity behind them,
// where they name no other.
std::vector<std::string> match_line(std::vector<std::string> arguments);
// nmrf match ARGUMENTS... on the small untrained network with 64 px of disparity.
Outcome match(std::vector<std::string> arguments, const RunOptions& options = {});

// A textured pair whose right view is shifted by `shift` pixels; CV_8UC3.
constexpr int kWidth = 96, kHeight = 64;
std::pair<cv::Mat, cv::Mat> made_pair(int seed = 1, int width = kWidth, int height = kHeight,
                                      int shift = 12);
// The same in two files, folders made on the way.
void put_pair(const fs::path& left, const fs::path& right, int seed = 1, int width = kWidth,
              int height = kHeight);

// Every line of `text` as JSON; fails the test for a line that is none.
std::vector<nlohmann::json> json_lines(const std::string& text);
// Names in a folder, sorted.
std::vector<std::string> names_in(const fs::path& folder);
bool contains(const std::string& text, const std::string& part);
// A finite, non-negative map of that size.
void expect_good_map(const cv::Mat& map, cv::Size size);

}  // namespace nmrf::test
