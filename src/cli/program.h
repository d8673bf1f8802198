// The programs behind the command `nmrf`. It holds what matching needs and starts the others, as
// git starts its subcommands: nmrf-tools (OpenCV), nmrf-export (ONNX) and nmrf-train (libtorch).
#pragma once

#include <span>
#include <string>

#include "cli/command.h"

namespace nmrf::cli {

inline constexpr const char* kTools = "nmrf-tools";
inline constexpr const char* kExport = "nmrf-export";
inline constexpr const char* kTrain = "nmrf-train";

// An executable: its commands, and what stands in brackets behind its version.
struct Program {
  std::string name;
  std::span<const Command> commands;
  std::string (*about)() = nullptr;
  bool libtorch = false;
};

// What every main() does: help, version, the command, and what a failure turns into. Commands of
// another program are started there.
int run_program(const Program& program, int argc, char** argv);

// True when these settings need nmrf-train and this is another program: a device other than the
// CPU, or NMRF_PLAIN in the environment.
bool needs_libtorch(const std::string& device = "auto");
// True in nmrf-train.
bool has_libtorch();

// Replaces this process by `program`, with the arguments of a command (argv[0] is its name). The
// program is looked for beside this one, in ../libexec/nmrf, ../lib/nmrf and in PATH. Throws
// Error(kUsage) that says what to install when it is not there.
[[noreturn]] void hand_over(const char* program, int argc, char** argv);

// The folder of this executable.
std::string program_folder();

}  // namespace nmrf::cli
