// The command `nmrf`: what matching needs, without OpenCV and libtorch.
#include "cli/program.h"

int main(int argc, char** argv) {
  using namespace nmrf::cli;
  constexpr Command kCommands[] = {
      {"match", cmd_match}, {"rectify", cmd_rectify}, {"convert", cmd_convert}, {"info", cmd_info},
      {"bench", cmd_bench}, {"doctor", cmd_doctor},   {"asp", cmd_asp},         {"view", cmd_view}};
  return run_program({.name = "nmrf", .commands = kCommands}, argc, argv);
}
