// What the commands share: options, terminal manners, exit codes.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/fields.h"
#include "io/pair_source.h"
#include "nmrf/matcher.h"

namespace nmrf::cli {

// One sub-command. `run` parses its own arguments (argv[0] is the command's name) and returns an
// exit code; it may throw nmrf::Error, which main turns into a message and a code.
struct Command {
  const char* name;
  int (*run)(int argc, char** argv);
};

int cmd_match(int argc, char** argv);
int cmd_asp(int argc, char** argv);
int cmd_bench(int argc, char** argv);
int cmd_convert(int argc, char** argv);
int cmd_doctor(int argc, char** argv);
int cmd_info(int argc, char** argv);
int cmd_eval(int argc, char** argv);
int cmd_export(int argc, char** argv);
int cmd_calibrate(int argc, char** argv);
int cmd_rectify(int argc, char** argv);
int cmd_plot(int argc, char** argv);
int cmd_submit(int argc, char** argv);
int cmd_synth(int argc, char** argv);
int cmd_train(int argc, char** argv);
int cmd_view(int argc, char** argv);

// Options that every command has: --quiet, --verbose, --threads.
struct CommonOptions {
  bool quiet = false;
  bool verbose = false;
  int threads = 0;  // 0: $OMP_NUM_THREADS, else one per core
  void add_to(CLI::App& app);
  // Sets the log sink.
  void apply() const;
  // `threads` as a number from 1 on.
  int thread_count() const;
};

// Parses; on --help or a mistake prints and returns the exit code to end with (0 or 2), else -1.
int parse(CLI::App& app, int argc, char** argv);

// --scale FACTOR, or "auto", which leaves `scale` empty (see MatchOptions::scale).
CLI::Option* add_scale(CLI::App& app, std::optional<double>& scale, const std::string& text);
// --max-disp PIXELS, or 0, which leaves it empty (see MatcherOptions::max_disp).
CLI::Option* add_max_disp(CLI::App& app, std::optional<int>& max_disp);

// LEFT, RIGHT, --list, --root, --layout, --side-by-side and --upright.
void add_pair_input(CLI::App& app, PairInput& input);

// --rectify of commands that compare with truth: small or off.
CLI::Option* add_rectify(CLI::App& app, std::string& rectify);

// --precision: auto, float32 or int8.
CLI::Option* add_precision(CLI::App& app, Precision& precision);

// --device: auto, cpu, cuda or cuda:N.
CLI::Option* add_device(CLI::App& app, std::string& device);

// A message of the library, which speaks of its API, in the words of the command line:
// "Raise max_disp" becomes "Raise --max-disp".
std::string in_options(std::string message);

// The argument of --size, WIDTHxHEIGHT; throws Error(kUsage) when it is not, or a side is below
// `least`.
struct ImageSize {
  int width = 0, height = 0;
};
ImageSize parse_size(const std::string& text, int least);

// True when stderr is a terminal and NO_COLOR is unset.
bool terminal_stderr();

// A single line on stderr that is redrawn; nothing when stderr is no terminal.
class ProgressLine {
 public:
  explicit ProgressLine(bool enabled);
  ~ProgressLine();
  void show(const std::string& text);
  void clear();

 private:
  bool enabled_;
  bool drawn_ = false;
};

// Set by SIGINT and SIGTERM once `watch_interrupts` was called; a second signal ends the process.
void watch_interrupts();
bool interrupted();
inline constexpr int kExitInterrupted = 130;

// A line on stdout. Throws Error(kFailure) when it cannot be written (a full disk).
void print(const std::string& text);
// The object in one line; bytes that are no UTF-8 (in file names) are replaced.
void print_json(const nlohmann::json& object);

// All settings of an option struct as lines of TOML with dotted keys: value, then its meaning.
template <class Options>
void print_settings(const Options& options, const std::string& indent = "") {
  Options::fields(options, [&](const char* key, const auto& value, const char* doc) {
    print(fmt::format("{}{:<34} = {:<10} # {}", indent, key, fields_detail::encode(value).dump(),
                      doc));
  });
}

}  // namespace nmrf::cli
