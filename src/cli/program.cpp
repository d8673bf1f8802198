#include "cli/program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <sstream>

#include "core/check.h"
#include "core/closest.h"
#include "nmrf/version.h"

namespace nmrf::cli {
namespace {

namespace fs = std::filesystem;

// Every command there is, and the program that holds it.
struct Entry {
  const char* name;
  const char* summary;
  const char* program;
};
constexpr const char* kRuntime = "nmrf";
constexpr Entry kCommands[] = {
    {"match", "disparity, depth and point clouds from stereo pairs", kRuntime},
    {"calibrate", "calibrate two cameras from images of a board", kTools},
    {"rectify", "rectify pairs, by a calibration or by image features", kRuntime},
    {"eval", "evaluate with the metrics of the stereo benchmarks", kTools},
    {"submit", "make archives for KITTI, Middlebury and ETH3D", kTools},
    {"train", "train or fine-tune a network", kTrain},
    {"plot", "plot training runs", kTools},
    {"synth", "render stereo scenes with exact disparity", kTools},
    {"view", "show results as HTML pages: photo, map, confidence, 3-D cloud", kRuntime},
    {"asp", "stereo plug-in for Ames Stereo Pipeline", kRuntime},
    {"convert", "convert a .pth checkpoint into a .safetensors model", kRuntime},
    {"export", "export a model to ONNX", kExport},
    {"info", "show options, parameters and FLOPs of a model", kRuntime},
    {"bench", "measure speed and memory on this machine", kRuntime},
    {"doctor", "show what is installed and run a self-test", kRuntime},
};

bool g_libtorch = false;

// How to get a program that is missing.
std::string remedy(const std::string& program) {
  const auto [what, option] = program == kTrain    ? std::pair("libtorch", "TRAIN")
                              : program == kExport ? std::pair("ONNX", "EXPORT")
                                                   : std::pair("OpenCV", "EVAL");
  return fmt::format("Build nmrf with {}: scripts/setup all, then cmake -DNMRF_BUILD_{}=ON.", what,
                     option);
}

void print_help(const Program& program) {
  std::string text =
      "nmrf: stereo matching by a Neural Markov Random Field\n\n"
      "Try first:\n"
      "  nmrf doctor                                                check the installation\n"
      "  nmrf match left.png right.png -o out/                      disparity of a rectified pair\n"
      "  nmrf match left.png right.png -o out/ --calib calib.txt    plus depth and a point "
      "cloud\n\n"
      "Commands (nmrf COMMAND --help lists the options):\n";
  for (const auto& command : kCommands) {
    text += fmt::format("  {:<10} {}", command.name, command.summary);
    if (command.program != program.name && find_program(command.program).empty())
      text += fmt::format(" (needs {}, not installed)", command.program);
    text += "\n";
  }
  text +=
      "\nOptions: --help, --version\n"
      "Exit codes: 0 ok, 1 failure, 2 usage, 3 input, 4 model, 5 device or memory, 130 "
      "interrupted\n";
  std::fputs(text.c_str(), stdout);
}

int run(const Program& program, int argc, char** argv) {
  const std::string first = argc < 2 ? "" : argv[1];
  if (argc < 2 || first == "--help" || first == "-h" || first == "help") {
    print_help(program);
    return argc < 2 ? 2 : 0;
  }
  if (first == "--list-commands") {  // for the shell completions
    for (const auto& command : kCommands)
      if (command.program == program.name || !find_program(command.program).empty())
        print(fmt::format("{}\t{}", command.name, command.summary));
    return 0;
  }
  if (first == "--version") {
    print(fmt::format("{} {}{}", program.name, NMRF_VERSION,
                      program.about ? " (" + program.about() + ")" : ""));
    return 0;
  }
  for (const auto& command : program.commands)
    if (first == command.name) return command.run(argc - 1, argv + 1);
  for (const auto& command : kCommands)
    if (first == command.name && command.program != program.name)
      hand_over(command.program, argc - 1, argv + 1);
  std::error_code ignored;
  check(!fs::exists(first, ignored), ErrorKind::kUsage,
        "'{}' is a file or folder, not a command. Did you mean: nmrf match {} RIGHT -o out/", first,
        first);
  std::vector<std::string> names;
  for (const auto& command : kCommands) names.emplace_back(command.name);
  fail(ErrorKind::kUsage, "unknown command '{}'; did you mean '{}'? nmrf --help lists all commands",
       first, closest(first, names));
}

}  // namespace

std::string find_program(const std::string& name) {
  const fs::path own = program_folder();
  std::vector<fs::path> folders{own, own / "../libexec/nmrf", own / "../lib/nmrf"};
  if (const char* path = std::getenv("PATH")) {
    std::istringstream parts(path);
    for (std::string part; std::getline(parts, part, ':');)
      if (!part.empty()) folders.emplace_back(part);
  }
  for (const fs::path& folder : folders) {
    const std::string candidate = (folder / name).lexically_normal().string();
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return {};
}

std::string program_folder() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored).parent_path().string();
}

bool has_libtorch() { return g_libtorch; }

bool needs_libtorch(const std::string& device) {
  if (g_libtorch) return false;
  const char* plain = std::getenv("NMRF_PLAIN");
  return device.starts_with("cuda") || (plain && *plain && std::strcmp(plain, "0") != 0);
}

bool prefer_short_spins() {
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT")) return false;
  return ::setenv("GOMP_SPINCOUNT", "10000", 0) == 0;
}

void hand_over(const char* program, int argc, char** argv) {
  const std::string path = find_program(program);
  check(!path.empty(), ErrorKind::kUsage,
        "nmrf {} needs the program {}, which is not installed. {}", argv[0], program,
        remedy(program));
  if (std::strcmp(program, kTrain) == 0) prefer_short_spins();
  std::string name = program;
  std::vector<char*> arguments{name.data()};
  arguments.insert(arguments.end(), argv, argv + argc);
  arguments.push_back(nullptr);
  ::execv(path.c_str(), arguments.data());
  fail(ErrorKind::kFailure, "{}: cannot be started: {}", path, std::strerror(errno));
}

namespace {

// Ends without the exit handlers of libtorch's BLAS, which retries for minutes to get the memory
// that is not there.
int out_of_memory() {
  std::fflush(stdout);
  if (g_libtorch) std::_Exit(static_cast<int>(ErrorKind::kDevice));
  return static_cast<int>(ErrorKind::kDevice);
}

}  // namespace

int run_program(const Program& program, int argc, char** argv) {
  g_libtorch = program.libtorch;
  try {
    return run(program, argc, argv);
  } catch (const Error& error) {
    std::fprintf(stderr, "error: %s\n", in_options(error.what()).c_str());
    return error.kind() == ErrorKind::kDevice ? out_of_memory() : error.exit_code();
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "error: out of memory; try --scale 0.5\n");
    return out_of_memory();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return static_cast<int>(ErrorKind::kFailure);
  }
}

}  // namespace nmrf::cli
