// The parts of `nmrf bench`: what is timed, and how the figures are printed.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "network/options.h"
#include "nmrf/image.h"
#include "nmrf/map.h"
#include "nmrf/matcher.h"

namespace nmrf::cli {

struct BenchSettings {
  std::string model;             // a file, or "formula:fast"
  std::vector<std::string> set;  // changes of its options
  Precision precision = Precision::kAuto;
  std::optional<double> scale = 1;  // empty: auto
  int batch = 1;                    // pairs at once; more than one only on libtorch
  bool train = false;               // a training step instead of a match
};

// A textured pair whose disparity grows from the top to the bottom, and its truth in pixels.
struct BenchScene {
  Image left, right;
  FloatMap truth;
};
BenchScene make_bench_scene(ImageSize size, double max_disp);

// The network, run one way.
class BenchSubject {
 public:
  virtual ~BenchSubject() = default;
  // Before every run, not timed.
  virtual void prepare() {}
  // Returns what the ways are compared by: the disparities in pixels, or loss and gradient norm.
  virtual std::vector<float> run(const BenchScene& scene) = 0;
  // Gives back memory that is kept for the next run.
  virtual void release() {}
  virtual std::string arithmetic() const { return "float32"; }
};

// The runtime: nmrf::Matcher, on images as they are.
std::unique_ptr<BenchSubject> make_runtime_subject(const BenchSettings& settings, int threads);

// Modules on libtorch; fast: on the kernels, else on plain ATen operators. Only nmrf-train has
// them; the other programs hand over to it.
using LibtorchBench = std::unique_ptr<BenchSubject> (*)(const BenchSettings& settings, int threads,
                                                        bool fast);
void set_libtorch_bench(LibtorchBench maker);
std::unique_ptr<BenchSubject> make_libtorch_subject(const BenchSettings& settings, int threads,
                                                    bool fast);

// OpenCV's SGBM, as `nmrf eval` runs it; in the programs that have OpenCV.
using BaselineBench = std::unique_ptr<BenchSubject> (*)(int threads);
void set_baseline_bench(BaselineBench maker);
std::unique_ptr<BenchSubject> make_sgbm_subject(int threads);

// One way to run and what was measured.
struct BenchCase {
  std::string name, key;  // in the table, in JSON
  int threads = 1;
  std::unique_ptr<BenchSubject> subject{};
  std::vector<double> seconds{};
  std::vector<std::pair<std::string, std::vector<double>>> stages{};
  std::optional<double> memory_mb{};  // peak, beyond what was there before
  std::vector<float> result{};

  double best() const;
  double median() const;
  std::optional<double> stage(const std::string& name) const;  // median seconds
};

// What all cases of a size have in common.
struct BenchFigures {
  std::string model;
  BenchSettings settings;
  ImageSize size;
  int runs = 1;
  double gflop = 0, peak = 0, one_peak = 0;  // GFLOP and GFLOP/s, of all threads and of one
  double memory_gain = 0;                    // of a pass over memory by all threads over one
  double load_seconds = 0;
  std::map<std::string, double> stage_gflop;
};

nlohmann::json bench_json(const BenchFigures& figures, const std::vector<BenchCase>& cases);
std::string bench_table(const BenchFigures& figures, const std::vector<BenchCase>& cases);

}  // namespace nmrf::cli
