// nmrf doctor: what is installed here, and does it work?
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <optional>
#include <thread>

#include "cli/command.h"
#include "cli/models.h"
#include "cli/program.h"
#include "core/check.h"
#include "core/quantile.h"
#include "core/rng.h"
#include "core/sha256.h"
#include "io/module.h"
#include "io/video.h"
#include "io/window.h"
#include "kernels/peak.h"
#include "nmrf/matcher.h"
#include "nmrf/version.h"

namespace nmrf::cli {
namespace {

constexpr int kWidth = 320, kHeight = 240;  // pixels of the self-test
constexpr int kFar = 8, kNear = 24;         // disparities of its wall and its board, pixels
constexpr int kBoardLeft = 130, kBoardRight = 220, kBoardTop = 70, kBoardBottom = 170;

// Noise at three scales: something to match everywhere.
std::uint8_t texture(int x, int y, int channel, std::uint64_t seed) {
  double sum = 0;
  for (int scale : {1, 3, 9}) {
    const std::uint64_t cell = mix_seed(
        {seed, static_cast<std::uint64_t>(scale), static_cast<std::uint64_t>(x / scale + 4096),
         static_cast<std::uint64_t>(y / scale), static_cast<std::uint64_t>(channel)});
    sum += static_cast<double>(cell >> 40) / 16777216.0;
  }
  return static_cast<std::uint8_t>(30 + 65 * sum);
}

bool on_board(int x, int y) {
  return x >= kBoardLeft && x < kBoardRight && y >= kBoardTop && y < kBoardBottom;
}

// A board before a wall, of the left (shift 0) or right camera.
Image self_test_view(bool right) {
  Image image(kWidth, kHeight);
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x) {
      const int near = x + (right ? kNear : 0), far = x + (right ? kFar : 0);
      const bool board = on_board(near, y);
      for (int c = 0; c < 3; ++c)
        image.row(y)[3 * x + c] = board ? texture(near, y, c, 7) : texture(far, y, c, 11);
    }
  return image;
}

struct SelfTest {
  double seconds = 0;
  double median_error = 0;  // pixels, over wall and board away from their edges
};

SelfTest run_self_test(const std::string& model, int threads) {
  MatcherOptions options;
  options.threads = threads;
  const Matcher matcher = Matcher::load(model, options);
  const Image left = self_test_view(false), right = self_test_view(true);
  MatchOptions how;
  how.scale = 1;
  const auto start = std::chrono::steady_clock::now();
  const Disparity result = matcher.match(left, right, how);
  SelfTest test;
  test.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::vector<float> errors;
  for (int y = 8; y < kHeight - 8; ++y)
    for (int x = kNear + 8; x < kWidth - 8; ++x)
      errors.push_back(
          std::abs(result.map.at(y, x) - static_cast<float>(on_board(x, y) ? kNear : kFar)));
  test.median_error = quantile(errors, 0.5);
  return test;
}

}  // namespace

int cmd_doctor(int argc, char** argv) {
  CLI::App app{
      "Show what is installed and run a self-test on a small generated pair of known disparity.\n\n"
      "  nmrf doctor\n",
      "nmrf doctor"};
  std::string model;
  bool as_json = false;
  CommonOptions common;
  app.add_option("-m,--model", model, "Model to test [bundled model]");
  app.add_flag("--json", as_json, "Print one JSON object");
  common.add_to(app);
  if (int code = parse(app, argc, argv); code >= 0) return code;
  common.apply();

  nlohmann::json out;
  out["version"] = NMRF_VERSION;
  out["cores"] = std::thread::hardware_concurrency();
  out["threads"] = common.thread_count();
  out["simd"] = kernels::simd_target();
  for (const char* program : {kTools, kTrain}) out["programs"][program] = find_program(program);
  for (const auto& folder : module_folders())
    for (const auto& [name, module] : {std::pair("video", kVideoModule), {"window", kWindowModule}})
      if (const auto file = folder / module; std::filesystem::exists(file))
        out["programs"][name] = file.string();
  std::optional<Error> trouble;
  try {
    const std::string path = model_path(model);
    out["model"] = path;
    if (std::filesystem::exists(path)) out["model_sha256"] = sha256_of_file(path);
    const SelfTest test = run_self_test(path, common.thread_count());
    out["self_test"] = {{"size", {kWidth, kHeight}},
                        {"seconds", test.seconds},
                        {"median_error_px", test.median_error}};
    check(test.median_error < 0.5, ErrorKind::kFailure,
          "the self-test is off by {:.2f} px (median): the model is untrained or damaged, or this "
          "build is faulty. Try the bundled model; if that fails too, please report it.",
          test.median_error);
  } catch (const Error& error) {
    trouble = error;
    out["error"] = error.what();
  }

  if (as_json) {
    print_json(out);
  } else {
    print(fmt::format("nmrf       {}", NMRF_VERSION));
    print(fmt::format("processor  {} cores, {} threads used, kernels for {}",
                      out["cores"].get<int>(), out["threads"].get<int>(),
                      out["simd"].get<std::string>()));
    for (const auto& [name, path] : out["programs"].items())
      print(
          fmt::format("{:<10} {}", name,
                      path.get<std::string>().empty() ? "not installed" : path.get<std::string>()));
    if (out.contains("model")) print("model      " + out["model"].get<std::string>());
    if (out.contains("self_test"))
      print(fmt::format("self-test  {}x{} in {:.2f} s, median error {:.3f} px", kWidth, kHeight,
                        out["self_test"]["seconds"].get<double>(),
                        out["self_test"]["median_error_px"].get<double>()));
    if (!trouble) print("Everything works. Next: nmrf match left.png right.png -o out/");
  }
  if (trouble) throw *trouble;
  return 0;
}

}  // namespace nmrf::cli
