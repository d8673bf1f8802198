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

// Where a program of that name is: beside this one, in ../libexec/nmrf, ../lib/nmrf or in PATH;
// empty when it is nowhere.
std::string find_program(const std::string& name);

// libgomp's threads spin so long by default that one busy neighbour slows a training step tenfold.
// Asks for a short spin, then sleep, in the environment of the next program; false when the user
// has chosen a policy.
bool prefer_short_spins();

// Replaces this process by `program`, with the arguments of a command (argv[0] is its name). Throws
// Error(kUsage) that says what to install when find_program() does not find it.
[[noreturn]] void hand_over(const char* program, int argc, char** argv);

// The folder of this executable.
std::string program_folder();

}  // namespace nmrf::cli
