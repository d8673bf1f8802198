// The command `nmrf`: a table of sub-commands, and what every failure turns into.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <new>
#include <opencv2/core/utility.hpp>
#include <opencv2/core/version.hpp>

#include "cli/command.h"
#include "cli/torch_version.h"
#include "nmrf/error.h"
#include "nmrf/version.h"

namespace nmrf::cli {
namespace {

constexpr Command kCommands[] = {
    {"match", "disparity, depth and point clouds from stereo pairs", cmd_match},
    {"eval", "the numbers of the stereo benchmarks", cmd_eval},
    {"submit", "archives for KITTI, Middlebury and ETH3D", cmd_submit},
    {"train", "train or fine-tune a network", cmd_train},
    {"plot", "draw the curves of training runs", cmd_plot},
    {"synth", "render stereo scenes with exact disparity", cmd_synth},
    {"convert", "turn a .pth checkpoint into a .safetensors model", cmd_convert},
    {"info", "options, parameters and arithmetic of a model", cmd_info},
    {"bench", "speed and memory of the network on this machine", cmd_bench},
};

void print_help() {
  std::string text =
      "nmrf: stereo matching by a Neural Markov Random Field\n\n"
      "  nmrf match left.png right.png -o out/\n"
      "  nmrf match left.png right.png -o out/ --calib calib.txt\n\n"
      "Commands (nmrf COMMAND --help tells more):\n";
  for (const auto& command : kCommands)
    text += fmt::format("  {:<9} {}\n", command.name, command.summary);
  text +=
      "\nOptions: --help, --version\n"
      "Exit codes: 0 ok, 1 failure, 2 usage, 3 input, 4 model, 5 device or memory, 130 "
      "interrupted\n";
  std::fputs(text.c_str(), stdout);
}

int run(int argc, char** argv) {
  if (argc < 2 || !std::strcmp(argv[1], "--help") || !std::strcmp(argv[1], "-h") ||
      !std::strcmp(argv[1], "help")) {
    print_help();
    return argc < 2 ? 2 : 0;
  }
  if (!std::strcmp(argv[1], "--version")) {
    print(fmt::format("nmrf {} ({}; OpenCV {})", NMRF_VERSION, torch_version(), CV_VERSION));
    return 0;
  }
  for (const auto& command : kCommands)
    if (!std::strcmp(argv[1], command.name)) return command.run(argc - 1, argv + 1);
  std::fprintf(stderr, "error: there is no command '%s'; nmrf --help lists them\n", argv[1]);
  return 2;
}

}  // namespace
}  // namespace nmrf::cli

int main(int argc, char** argv) {
  // OpenCV reports its own troubles on stderr; ours name the file and say what to try.
  cv::redirectError([](int, const char*, const char*, const char*, int, void*) { return 0; });
  try {
    return nmrf::cli::run(argc, argv);
  } catch (const nmrf::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return error.exit_code();
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "error: out of memory; try --scale 0.5\n");
    return 5;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
