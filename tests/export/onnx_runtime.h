// ONNX Runtime for the tests: a process of Node.js that runs an exported file.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace nmrf::test {

// One input of a run: raw values, row by row.
struct OnnxInput {
  std::string name, type;  // float32, uint8 or int64
  std::vector<int> shape;
  std::vector<std::uint8_t> bytes;
};

struct OnnxRun {
  std::map<std::string, std::vector<float>> outputs;
  std::string figures;  // JSON: times and memory
};

// The folder of ONNX Runtime: $NMRF_ONNXRUNTIME, or `onnxruntime` in the build folder, where npm
// puts it the first time. Empty where there is neither it nor npm; why says which.
std::filesystem::path onnx_runtime(std::string& why);

OnnxRun run_onnx(const std::filesystem::path& runtime, const std::filesystem::path& model,
                 const std::vector<OnnxInput>& inputs,
                 const std::vector<std::string>& outputs = {"disparity", "confidence"},
                 int threads = 1, int repeats = 1);

}  // namespace nmrf::test

// Declares `runtime`, or skips the running test.
#define NMRF_NEED_ONNX_RUNTIME(runtime)                   \
  std::string why_not;                                    \
  const auto runtime = nmrf::test::onnx_runtime(why_not); \
  if (runtime.empty()) GTEST_SKIP() << "skipped: " << why_not
