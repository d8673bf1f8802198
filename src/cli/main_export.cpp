// nmrf-export: models for other engines, on ONNX's schema and protobuf.
#include <onnx/common/version.h>

#include "cli/program.h"

int main(int argc, char** argv) {
  using namespace nmrf::cli;
  constexpr Command kCommands[] = {{"export", cmd_export}};
  const auto about = [] { return std::string("ONNX ") + ONNX_NAMESPACE::LAST_RELEASE_VERSION; };
  return run_program({.name = kExport, .commands = kCommands, .about = about}, argc, argv);
}
