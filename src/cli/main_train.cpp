// nmrf-train: training, and the other commands on libtorch for GPUs and for comparisons.
#include <fmt/format.h>
#include <torch/torch.h>

#include <opencv2/core/utility.hpp>
#include <opencv2/core/version.hpp>

#include "cli/bench.h"
#include "cli/eval_methods.h"
#include "cli/program.h"
#include "train/engine.h"
#include "train/superpixels.h"

int main(int argc, char** argv) {
  using namespace nmrf::cli;
  cv::redirectError([](int, const char*, const char*, const char*, int, void*) { return 0; });
  nmrf::train::use_libtorch_engine();
  set_libtorch_bench(make_libtorch_subject);
  set_baseline_bench(make_sgbm_subject);
  set_segmenter(nmrf::train::cached_superpixels);
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
