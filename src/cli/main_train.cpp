// nmrf-train: training, and the other commands on libtorch for GPUs and for comparisons.
#include <fmt/format.h>
#include <torch/torch.h>
#include <unistd.h>

#include <opencv2/core/utility.hpp>
#include <opencv2/core/version.hpp>

#include "cli/bench.h"
#include "cli/eval_methods.h"
#include "cli/feature_rectify.h"
#include "cli/model_access.h"
#include "cli/program.h"
#include "train/engine.h"
#include "train/model/grow.h"
#include "train/model/weights.h"
#include "train/superpixels.h"

namespace {

void grow(const nmrf::cli::ModelContent& model, const nmrf::ModelOptions& to,
          const std::filesystem::path& path, std::map<std::string, std::string> metadata,
          bool half) {
  const auto network = nmrf::train::grow(model.file, model.path, model.options, to, 1);
  nmrf::train::save_model(path, network, std::move(metadata), half);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace nmrf::cli;
  // libgomp has read its settings by now; started by nmrf, they were right from the start.
  if (prefer_short_spins()) ::execv("/proc/self/exe", argv);
  cv::redirectError([](int, const char*, const char*, const char*, int, void*) { return 0; });
  nmrf::train::use_libtorch_engine();
  set_libtorch_bench(make_libtorch_subject);
  set_grower(grow);
  set_baseline_bench(make_sgbm_subject);
  set_segmenter(nmrf::train::cached_superpixels);
  use_feature_rectifier();
  constexpr Command kCommands[] = {
      {"train", cmd_train},     {"match", cmd_match}, {"eval", cmd_eval},  {"submit", cmd_submit},
      {"convert", cmd_convert}, {"info", cmd_info},   {"bench", cmd_bench}};
  const auto about = [] {
    return fmt::format("libtorch {}, {}; OpenCV {}", TORCH_VERSION,
                       torch::cuda::is_available() ? "CUDA" : "no CUDA", CV_VERSION);
  };
  return run_program({.name = kTrain, .commands = kCommands, .about = about, .libtorch = true},
                     argc, argv);
}
