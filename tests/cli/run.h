// Running the built command and making small inputs for it.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "nmrf/files.h"
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
  fs::path program = NMRF_COMMAND;
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

// A textured pair whose right view is shifted by `shift` pixels; 8-bit RGB.
constexpr int kWidth = 96, kHeight = 64;
std::pair<Image, Image> made_pair(int seed = 1, int width = kWidth, int height = kHeight,
                                  int shift = 12);
// Both images beside each other.
Image beside(const Image& left, const Image& right);
// A part of an 8-bit image.
Image cut(const Image& image, int x, int y, int width, int height);
// As seen in a mirror.
Image mirrored(const Image& image);
FloatMap mirrored(const FloatMap& map);

// The same in two files, folders made on the way.
void put_pair(const fs::path& left, const fs::path& right, int seed = 1, int width = kWidth,
              int height = kHeight);

// Every line of `text` as JSON; fails the test for a line that is none.
std::vector<nlohmann::json> json_lines(const std::string& text);
// Names in a folder, sorted.
std::vector<std::string> names_in(const fs::path& folder);
bool contains(const std::string& text, const std::string& part);
// A finite, non-negative map of that size.
void expect_good_map(const FloatMap& map, int width = kWidth, int height = kHeight);
// Of maps of one size; infinity where they are not, or where only one of them is finite.
double largest_difference(const FloatMap& a, const FloatMap& b);
// The largest difference of two values in 8-bit images of one size.
int largest_difference(const Image& a, const Image& b);

}  // namespace nmrf::test
