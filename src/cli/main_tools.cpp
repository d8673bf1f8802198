// nmrf-tools: evaluation, submissions, plots and rendered scenes, on OpenCV.
#include <opencv2/core/utility.hpp>
#include <opencv2/core/version.hpp>

#include "cli/bench.h"
#include "cli/feature_rectify.h"
#include "cli/program.h"
#include "core/check.h"

namespace {

#ifndef NMRF_WITH_SYNTH
int no_synth(int, char**) {
  nmrf::fail(nmrf::ErrorKind::kUsage,
             "nmrf synth is not part of this build; configure with -DNMRF_BUILD_SYNTH=ON, which "
             "needs Embree (scripts/setup all)");
}
#endif

}  // namespace

int main(int argc, char** argv) {
  using namespace nmrf::cli;
  // OpenCV reports its own troubles on stderr; ours name the file and say what to try.
  cv::redirectError([](int, const char*, const char*, const char*, int, void*) { return 0; });
  use_feature_rectifier();
  set_baseline_bench(make_sgbm_subject);
  constexpr Command kCommands[] = {{"eval", cmd_eval},       {"submit", cmd_submit},
                                   {"plot", cmd_plot},       {"match", cmd_match},
                                   {"rectify", cmd_rectify}, {"calibrate", cmd_calibrate},
                                   {"bench", cmd_bench},
#ifdef NMRF_WITH_SYNTH
                                   {"synth", cmd_synth}};
#else
                                   {"synth", no_synth}};
#endif
  const auto about = [] { return std::string("OpenCV " CV_VERSION); };
  return run_program({.name = kTools, .commands = kCommands, .about = about}, argc, argv);
}
