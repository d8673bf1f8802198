// nmrf bench: how fast the network runs here, stage by stage, next to what the machine could do.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <optional>
#include <thread>

#include "cli/bench.h"
#include "cli/command.h"
#include "cli/model_access.h"
#include "cli/models.h"
#include "cli/program.h"
#include "cli/simd_option.h"
#include "core/check.h"
#include "core/quantile.h"
#include "core/stage_clock.h"
#include "kernels/peak.h"
#include "network/flops.h"

namespace nmrf::cli {
namespace {

LibtorchBench g_libtorch_bench = nullptr;
BaselineBench g_baseline_bench = nullptr;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// A figure of /proc/self/status in MB; nothing where there is no such file.
std::optional<double> status_mb(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.rfind(key + ":", 0) == 0) return std::stod(line.substr(key.size() + 1)) / 1024;
  return std::nullopt;
}

// Peak resident memory that `run` adds to what was there before.
std::optional<double> peak_memory_mb(const std::function<void()>& run) {
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak begins anew
  auto before = status_mb("VmRSS");
  run();
  auto after = status_mb("VmHWM");
  if (!before || !after) return std::nullopt;
  return *after - *before;
}

// Runs `work(i)` on so many threads at once.
void on_threads(int threads, const std::function<void(int)>& work) {
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) workers.emplace_back([&work, i] { work(i); });
  for (auto& worker : workers) worker.join();
}

double peak_of_machine(int threads) {
  std::vector<double> each(static_cast<std::size_t>(threads));
  on_threads(threads, [&](int i) { each[static_cast<std::size_t>(i)] = kernels::fma_peak(0.3); });
  double sum = 0;
  for (double one : each) sum += one;
  return sum;
}

// Bytes per second, read and written, in passes over two maps of 20 MB (one that the network has at
// 640 x 480), which is more than a core's own caches hold.
double memory_rate(int threads) {
  constexpr std::size_t kFloats = 5 << 20, kPasses = 31;
  std::vector<float> from(kFloats, 1.f), to(kFloats, 1.f);
  const auto start = std::chrono::steady_clock::now();
  on_threads(threads, [&](int i) {
    const std::size_t count = kFloats / static_cast<std::size_t>(threads);
    const float* a = from.data() + count * static_cast<std::size_t>(i);
    float* b = to.data() + count * static_cast<std::size_t>(i);
    for (std::size_t pass = 0; pass < kPasses; ++pass)
      for (std::size_t k = 0; k < count; ++k) b[k] += 0.5f * a[k];
  });
  return 3.0 * kPasses * kFloats * sizeof(float) / seconds_since(start);
}

// Warm-up (which also shows the memory), then `runs` timed runs of every case in turn.
void measure(const BenchScene& scene, int runs, std::vector<BenchCase>& cases,
             const std::function<void(const std::string&)>& progress) {
  for (auto& one : cases) {
    progress(one.name + ": warm-up");
    for (auto& other : cases) other.subject->release();
    one.subject->prepare();
    one.memory_mb = peak_memory_mb([&] { one.result = one.subject->run(scene); });
  }
  for (int i = 0; i < runs; ++i)
    for (auto& one : cases) {
      progress(fmt::format("{}: run {} of {}", one.name, i + 1, runs));
      one.subject->prepare();
      StageClock clock;
      const auto start = std::chrono::steady_clock::now();
      one.subject->run(scene);
      one.seconds.push_back(seconds_since(start));
      for (const auto& [name, seconds] : clock.seconds()) {
        auto place = std::find_if(one.stages.begin(), one.stages.end(),
                                  [&, n = name](const auto& stage) { return stage.first == n; });
        if (place == one.stages.end()) place = one.stages.insert(place, {name, {}});
        place->second.push_back(seconds);
      }
    }
}

std::vector<BenchCase> make_cases(const BenchSettings& settings, int threads, bool compare,
                                  bool scaling, bool baseline) {
  std::vector<BenchCase> cases;
  auto add = [&](const char* name, const char* key, int count,
                 std::unique_ptr<BenchSubject> subject) {
    cases.push_back({.name = name, .key = key, .threads = count, .subject = std::move(subject)});
  };
  const bool modules = settings.train || settings.batch > 1;  // the runtime has neither
  auto make = [&](int count) {
    return modules ? g_libtorch_bench(settings, count, true)
                   : make_runtime_subject(settings, count);
  };
  add(modules ? "fast" : "runtime", "", threads, make(threads));
  if (compare && !modules) add("fast", "fast", threads, g_libtorch_bench(settings, threads, true));
  if (compare) add("plain", "plain", threads, g_libtorch_bench(settings, threads, false));
  if (baseline) add("sgbm", "sgbm", threads, g_baseline_bench(threads));
  if (scaling && threads > 1) add("1 thread", "one_thread", 1, make(1));
  return cases;
}

}  // namespace

void set_libtorch_bench(LibtorchBench maker) { g_libtorch_bench = maker; }
void set_baseline_bench(BaselineBench maker) { g_baseline_bench = maker; }

int cmd_bench(int argc, char** argv) {
  CLI::App app{
      "Measure speed and memory of the network on this machine.\n\n"
      "  nmrf bench --preset paper --size 640x480\n"
      "  nmrf bench --model model.safetensors --size 640x480 1920x1080 --scaling\n"
      "  nmrf bench --size 640x480 1242x375 --baseline sgbm\n"
      "  nmrf bench --preset fast --size 512x256 --batch 4 --train --compare\n\n"
      "--compare, --train and --batch need nmrf-train (libtorch), --baseline needs nmrf-tools "
      "(OpenCV).\n",
      "nmrf bench"};
  std::string model, preset, baseline;
  std::vector<std::string> sizes{"640x480"};
  BenchSettings settings;
  int runs = 5;
  bool compare = false, scaling = false, as_json = false;
  CommonOptions common;
  auto* model_option = app.add_option("-m,--model", model, "Model file [bundled model]");
  app.add_option("--preset", preset, "Untrained weights of this preset: paper, swin, fast or base")
      ->excludes(model_option);
  app.add_option("--size", sizes, "Image sizes WxH")->capture_default_str();
  app.add_option("--batch", settings.batch, "Pairs per batch")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--runs", runs, "Timed runs of each variant, in turn")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("-s,--set", settings.set, "Change a model option, e.g. seeds.labels=2");
  add_precision(app, settings.precision);
  add_scale(app, settings.scale, "As for nmrf match; runtime only")->default_str("1");
  app.add_option("--baseline", baseline, "Also time OpenCV's semi-global matching: sgbm")
      ->check(CLI::IsMember({"sgbm"}));
  add_simd(app);
  app.add_flag("--compare", compare,
               "Also time libtorch on the fast and the plain operators, and compare the results");
  app.add_flag("--scaling", scaling,
               "Also time one thread, and how FMA peak and memory bandwidth scale");
  app.add_flag("--train", settings.train,
               "Time a training step: forward, losses, backward, update");
  app.add_flag("--json", as_json, "Print one JSON object per size");
  common.add_to(app);
  if (int code = parse(app, argc, argv); code >= 0) return code;
  common.apply();
  std::vector<ImageSize> parsed;
  for (const auto& size : sizes) parsed.push_back(parse_size(size, 32));
  const bool libtorch = compare || settings.train || settings.batch > 1;
  if (needs_libtorch() || (libtorch && !has_libtorch())) hand_over(kTrain, argc, argv);
  if (!baseline.empty() && !g_baseline_bench) hand_over(kTools, argc, argv);

  settings.model = preset.empty() ? model_path(model) : "formula:" + preset;
  // The modules end with the network: nothing may be done to the map after it when they compare.
  if (compare && settings.precision == Precision::kAuto) settings.precision = Precision::kFloat32;
  if (compare && !settings.train)
    for (const char* off : {"match.fill=0", "match.median=0", "match.guide=false"})
      settings.set.emplace_back(off);
  const ModelOptions options = model_options(settings.model, settings.set);
  const int threads = common.thread_count();
  BenchFigures figures;
  figures.model = settings.model;
  figures.settings = settings;
  figures.runs = runs;
  figures.peak = peak_of_machine(threads);
  figures.one_peak = scaling ? peak_of_machine(1) : figures.peak / threads;
  figures.memory_gain = scaling ? memory_rate(threads) / memory_rate(1) : 0;
  const auto load_start = std::chrono::steady_clock::now();
  auto cases = make_cases(settings, threads, compare, scaling, !baseline.empty());
  figures.load_seconds = seconds_since(load_start) / static_cast<double>(cases.size());
  ProgressLine line(!common.quiet);

  for (std::size_t s = 0; s < parsed.size(); ++s) {
    figures.size = parsed[s];
    for (auto& one : cases) one.seconds.clear(), one.stages.clear();
    measure(make_bench_scene(figures.size, options.max_disp), runs, cases,
            [&](const std::string& text) { line.show(text); });
    line.clear();

    // A backward pass costs twice its forward pass.
    const double factor = settings.batch * (settings.train ? 3.0 : 1.0) / 1e9;
    figures.gflop = 0;
    figures.stage_gflop.clear();
    auto add_pass = [&](int width, int height) {
      for (const auto& stage : count_flops(options, width, height)) {
        figures.gflop += factor * stage.total();
        figures.stage_gflop[stage.name] += settings.batch * stage.total() / 1e9;
      }
    };
    const auto [width, height] = figures.size;
    add_pass(width, height);
    if (options.guide && !settings.train && std::min(width, height) >= 64)
      add_pass(width / 2, height / 2);
    figures.stage_gflop["backward"] = settings.train ? figures.gflop * 2 / 3 : 0;
    if (as_json)
      print_json(bench_json(figures, cases));
    else
      print((s ? "\n" : "") + bench_table(figures, cases));
  }
  return 0;
}

}  // namespace nmrf::cli
