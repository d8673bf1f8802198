#include "export/onnx_runtime.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "support/support.h"

namespace nmrf::test {
namespace {

namespace fs = std::filesystem;

// Exit code of a command, its output in `text`.
int shell(const std::string& command, std::string* text = nullptr) {
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (!pipe) return -1;
  std::string all;
  char buffer[4096];
  while (std::size_t n = std::fread(buffer, 1, sizeof buffer, pipe)) all.append(buffer, n);
  if (text) *text = all;
  return ::pclose(pipe);
}

bool usable(const fs::path& folder) {
  return fs::exists(folder / "node_modules/onnxruntime-node/package.json");
}

void write_bytes(const fs::path& path, const std::vector<std::uint8_t>& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

std::vector<float> read_floats(const fs::path& path) {
  std::vector<float> values(fs::file_size(path) / sizeof(float));
  std::ifstream(path, std::ios::binary)
      .read(reinterpret_cast<char*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(float)));
  return values;
}

std::string joined(const std::vector<int>& shape) {
  std::string text;
  for (int size : shape) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

}  // namespace

fs::path onnx_runtime(std::string& why) {
  if (const char* given = std::getenv("NMRF_ONNXRUNTIME"); given && *given) {
    if (usable(given)) return given;
    why = std::string("no node_modules/onnxruntime-node in NMRF_ONNXRUNTIME=") + given;
    return {};
  }
  if (shell("node --version") != 0 || shell("npm --version") != 0) {
    why = "no npm, which brings ONNX Runtime";
    return {};
  }
  const fs::path folder = NMRF_BINARY_DIR "/onnxruntime";
  static bool tried = false;
  if (!usable(folder) && !tried) {
    tried = true;
    fs::create_directories(folder);
    shell("npm install --ignore-scripts --no-audit --no-fund --no-save --prefix '" +
          folder.string() + "' onnxruntime-node@1");
  }
  if (usable(folder)) return folder;
  why = "npm could not install onnxruntime-node";
  return {};
}

OnnxRun run_onnx(const fs::path& runtime, const fs::path& model,
                 const std::vector<OnnxInput>& inputs, const std::vector<std::string>& outputs,
                 int threads, int repeats) {
  TempFolder folder;
  std::ostringstream command;
  command << "node '" NMRF_SOURCE_DIR "/tests/export/run_onnx.js' '" << runtime.string() << "' '"
          << model.string() << "' '" << folder.path().string() << "' " << threads << ' ' << repeats;
  for (const OnnxInput& input : inputs) {
    const fs::path file = folder / (input.name + ".in");
    write_bytes(file, input.bytes);
    command << " '" << input.name << '=' << file.string() << ':' << input.type << ':'
            << joined(input.shape) << '\'';
  }
  OnnxRun run;
  const int code = shell(command.str(), &run.figures);
  EXPECT_EQ(code, 0) << run.figures;
  if (code != 0) return run;
  for (const std::string& name : outputs) run.outputs[name] = read_floats(folder / (name + ".bin"));
  return run;
}

}  // namespace nmrf::test
