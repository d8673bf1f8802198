// nmrf bench: how fast the network runs here, stage by stage, next to what the machine could do.
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <thread>

#include "cli/command.h"
#include "cli/models.h"
#include "core/check.h"
#include "core/quantile.h"
#include "core/stage_clock.h"
#include "network/flops.h"
#include "train/model/weights.h"
#include "nmrf/matcher.h"
#include "train/ops/dispatch.h"
#include "kernels/peak.h"
#include "train/ops/memory.h"
#include "train/losses.h"
#include "train/optimizer.h"

namespace nmrf::cli {
namespace {

// A figure of /proc/self/status in MB; nothing where there is no such file.
std::optional<double> status_mb(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.rfind(key + ":", 0) == 0) return std::stod(line.substr(key.size() + 1)) / 1024;
  return std::nullopt;
}

// Peak resident memory that `run` adds to what was there before.
std::optional<double> peak_memory_mb(const std::function<void()>& run) {
  ops::release_idle();
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak begins anew
  auto before = status_mb("VmRSS");
  run();
  auto after = status_mb("VmHWM");
  if (!before || !after) return std::nullopt;
  return *after - *before;
}

double peak_of_machine(int threads) {
  std::vector<double> each(threads);
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i)
    workers.emplace_back([&each, i] { each[i] = ops::kernels::fma_peak(0.3); });
  for (auto& worker : workers) worker.join();
  double sum = 0;
  for (double one : each) sum += one;
  return sum;
}

// Bytes a second, read and written, in a pass over two maps of 20 MB (one that the network has at
// 640 x 480), which is more than a core's own caches hold; median of repeated ones.
double memory_rate(int threads) {
  const int before = at::get_num_threads();
  set_threads(threads);
  auto from = torch::ones({5 << 20}), to = torch::ones({5 << 20});
  std::vector<double> seconds;
  for (int i = 0; i < 31; ++i) {
    const auto start = std::chrono::steady_clock::now();
    to.add_(from, 0.5);
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  set_threads(before);
  return 3.0 * static_cast<double>(from.nbytes()) / quantile(seconds, 0.5);
}

// A textured pair whose disparity grows from the top to the bottom, and its truth.
struct Scene {
  torch::Tensor left, right;  // [B, 3, H, W], H and W multiples of 8
  Truth truth;
};

Scene make_scene(const ImageSize& size, int64_t batch, double max_disp) {
  const int64_t h = (size.height + 7) / 8 * 8, w = (size.width + 7) / 8 * 8;
  torch::manual_seed(1);
  // Noise of several scales.
  auto texture = torch::zeros({batch, 3, h, w});
  for (int64_t scale : {1, 4, 16}) {
    auto noise = torch::rand({batch, 3, (h + scale - 1) / scale, (w + scale - 1) / scale});
    texture += torch::upsample_bilinear2d(noise, {h, w}, false) * (255.0 / 3);
  }
  Scene scene;
  scene.right = texture;
  auto rows = torch::linspace(0.02 * max_disp, std::min(0.5 * max_disp, w / 4.0), h).floor();
  auto columns = (torch::arange(w).view({1, w}) - rows.view({h, 1})).clamp(0, w - 1);
  auto index = columns.to(torch::kLong).view({1, 1, h, w}).expand({batch, 3, h, w});
  scene.left = texture.gather(3, index);
  scene.truth.disparity = rows.view({1, h, 1}).expand({batch, h, w}).contiguous();
  scene.truth.valid = torch::ones({batch, h, w}, torch::kBool);
  auto first = scene.truth.disparity
                   .index({torch::indexing::Slice(), torch::indexing::Slice(0, h, 8),
                           torch::indexing::Slice(0, w, 8)})
                   .unsqueeze(-1);
  auto none = torch::full({batch, h / 8, w / 8, 3}, std::numeric_limits<float>::quiet_NaN());
  scene.truth.modals = torch::cat({first, none}, -1);
  return scene;
}

// One way to run: its settings and what was measured.
struct Case {
  std::string name;
  bool fast = true;
  int threads = 1;
  std::vector<double> seconds{};
  std::vector<std::pair<std::string, std::vector<double>>> stages{};
  std::optional<double> memory_mb{};
  torch::Tensor result{};  // the disparity, or loss and gradient norm

  double best() const { return *std::min_element(seconds.begin(), seconds.end()); }
  static double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const auto n = values.size();
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
  }
  double median() const { return median(seconds); }
  std::optional<double> stage(const std::string& stage_name) const {
    for (const auto& [name, values] : stages)
      if (name == stage_name) return median(values);
    return std::nullopt;
  }
};

class Bench {
 public:
  Bench(Network network, bool train, int64_t batch, double max_disp)
      : network_(std::move(network)), train_(train), batch_(batch), max_disp_(max_disp) {
    if (train_) {
      network_->train();
      optimizer_.emplace(network_, 1e-5, std::vector<std::string>{});
      for (const auto& item : network_->named_parameters())
        start_.push_back(item.value().detach().clone());
    } else {
      network_->eval();
    }
  }

  // Warm-up (which also shows the memory), then `runs` timed runs of every case in turn.
  void measure(const ImageSize& size, int runs, std::vector<Case>& cases,
               const std::function<void(const std::string&)>& progress) {
    scene_ = make_scene(size, batch_, max_disp_);
    for (auto& one : cases) {
      progress(one.name + ": warm-up");
      prepare(one);
      one.memory_mb = peak_memory_mb([&] { one.result = run(); });
    }
    for (int i = 0; i < runs; ++i)
      for (auto& one : cases) {
        progress(fmt::format("{}: run {} of {}", one.name, i + 1, runs));
        prepare(one);
        StageClock clock;
        const auto start = std::chrono::steady_clock::now();
        run();
        one.seconds.push_back(
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
        for (const auto& [name, seconds] : clock.seconds()) {
          auto place = std::find_if(one.stages.begin(), one.stages.end(),
                                    [&, n = name](const auto& stage) { return stage.first == n; });
          if (place == one.stages.end()) place = one.stages.insert(place, {name, {}});
          place->second.push_back(seconds);
        }
      }
  }

 private:
  void prepare(const Case& one) {
    ops::set_fast(one.fast);
    set_threads(one.threads);
    if (!train_) return;
    torch::NoGradGuard no_grad;  // every step starts from the same weights
    std::size_t i = 0;
    for (auto& item : network_->named_parameters()) item.value().copy_(start_[i++]);
  }

  torch::Tensor run() {
    if (!train_) {
      torch::InferenceMode guard;
      return network_->forward(scene_.left, scene_.right, {.lean = true}).disparity;
    }
    optimizer_->zero_grad();
    NetworkOutput out = network_->forward(scene_.left, scene_.right, {.every_layer = true});
    Losses losses;
    {
      StageScope stage("losses");
      LossOptions options;
      options.max_disp = max_disp_;
      losses = compute_losses(out, scene_.truth, options);
    }
    {
      StageScope stage("backward");
      losses.total.backward();
    }
    StageScope stage("update");
    const double norm = optimizer_->clip(1);
    optimizer_->step(1e-5);
    return torch::tensor({losses.total.item<double>(), norm});
  }

  Network network_;
  bool train_;
  int64_t batch_;
  double max_disp_;
  std::optional<AdamW> optimizer_;
  std::vector<torch::Tensor> start_;
  Scene scene_;
};

// How far two results are apart: of maps the largest and the median difference in pixels and the
// share above 0.01 px, of training steps the relative differences of loss and gradient norm.
nlohmann::json difference(const torch::Tensor& a, const torch::Tensor& b, bool train) {
  auto gap = (a - b).abs();
  if (train)
    return {{"loss", (gap[0] / b[0].abs()).item<double>()},
            {"gradient_norm", (gap[1] / b[1].abs()).item<double>()}};
  return {{"largest_px", gap.max().item<double>()},
          {"median_px", gap.median().item<double>()},
          {"share_above_0.01_px", (gap > 0.01).to(torch::kDouble).mean().item<double>()}};
}

nlohmann::json to_json(const Case& one, double gflop,
                       const std::map<std::string, double>& stage_gflop) {
  nlohmann::json out;
  out["seconds"] = {{"best", one.best()}, {"median", one.median()}};
  out["gflops"] = gflop / one.median();
  out["memory_mb"] = one.memory_mb ? nlohmann::json(*one.memory_mb) : nlohmann::json();
  out["threads"] = one.threads;
  for (const auto& [name, values] : one.stages) {
    const double seconds = Case::median(values);
    auto& stage = out["stages"][name];
    stage["ms"] = 1e3 * seconds;
    if (auto found = stage_gflop.find(name); found != stage_gflop.end() && found->second > 0)
      stage["gflops"] = found->second / seconds;
  }
  return out;
}

}  // namespace

int cmd_bench(int argc, char** argv) {
  CLI::App app{
      "Measure the network on this machine.\n\n"
      "  nmrf bench --preset paper --size 640x480 --compare\n"
      "  nmrf bench --preset fast --size 512x256 --batch 4 --train --compare\n"
      "  nmrf bench --model model.safetensors --size 640x480 1920x1080 --scaling\n",
      "nmrf bench"};
  std::string model, preset;
  std::vector<std::string> sizes{"640x480"}, set;
  int runs = 5, batch = 1;
  bool compare = false, train = false, scaling = false, as_json = false;
  CommonOptions common;
  auto* model_option = app.add_option("-m,--model", model, "Model (default: the one shipped)");
  app.add_option("--preset", preset, "Untrained weights of this preset: paper or fast")
      ->excludes(model_option);
  app.add_option("--size", sizes, "Image sizes WxH")->capture_default_str();
  app.add_option("--batch", batch, "Pairs at once")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--runs", runs, "Timed runs of each kind, in turn")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("-s,--set", set, "Change a model option, e.g. seeds.labels=2");
  app.add_flag("--compare", compare, "Also the plain operators, and how far the results differ");
  app.add_flag("--scaling", scaling,
               "Also with one thread, beside what the FMA peak and memory gain");
  app.add_flag("--train", train, "A training step: forward, losses, backward, update");
  app.add_flag("--json", as_json, "One JSON object a size");
  common.add_to(app);
  if (int code = parse(app, argc, argv); code >= 0) return code;
  common.apply();

  std::vector<ImageSize> parsed;
  for (const auto& size : sizes) parsed.push_back(parse_size(size, 32));
  const auto load_start = std::chrono::steady_clock::now();
  LoadedModel loaded = load_model(preset.empty() ? model_path(model) : "formula:" + preset, set);
  const double load_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - load_start).count();
  const ModelOptions options = loaded.network->options();
  const int all_threads = threads();
  const double peak = peak_of_machine(all_threads);
  const double one_peak = scaling ? peak_of_machine(1) : peak / all_threads;
  const double memory_gain = scaling ? memory_rate(all_threads) / memory_rate(1) : 0;
  Bench bench(loaded.network, train, batch, options.max_disp);
  ProgressLine line(!common.quiet);
  const bool fast_before = ops::fast_enabled();

  for (std::size_t s = 0; s < parsed.size(); ++s) {
    const ImageSize size = parsed[s];
    std::vector<Case> cases{{.name = "fast", .fast = true, .threads = all_threads}};
    if (compare) cases.push_back({.name = "plain", .fast = false, .threads = all_threads});
    if (scaling && all_threads > 1)
      cases.push_back({.name = "1 thread", .fast = true, .threads = 1});
    bench.measure(size, runs, cases, [&](const std::string& text) { line.show(text); });
    line.clear();

    // A backward pass costs twice its forward pass.
    const double factor = batch * (train ? 3.0 : 1.0) / 1e9;
    std::map<std::string, double> stage_gflop;
    double gflop = 0;
    for (const auto& stage : count_flops(options, size.width, size.height)) {
      gflop += factor * stage.total();
      stage_gflop[stage.name] = batch * stage.total() / 1e9;
    }
    stage_gflop["backward"] = train ? gflop * 2 / 3 : 0;
    const double megapixels = 1e-6 * batch * size.width * size.height;
    const Case& main = cases[0];

    if (as_json) {
      nlohmann::json out = to_json(main, gflop, stage_gflop);
      out["model"] = loaded.path;
      out["size"] = {size.width, size.height};
      out["batch"] = batch;
      out["train"] = train;
      out["runs"] = runs;
      out["gflop"] = gflop;
      out["peak_gflops"] = peak;
      out["percent_of_peak"] = 100 * gflop / main.median() / peak;
      out["simd"] = ops::kernels::simd_target();
      out["load_seconds"] = load_seconds;
      out["seconds_per_megapixel"] = main.median() / megapixels;
      for (std::size_t i = 1; i < cases.size(); ++i) {
        auto& other = out[cases[i].fast ? "one_thread" : "plain"];
        other = to_json(cases[i], gflop, stage_gflop);
        other["speedup"] = cases[i].median() / main.median();
        other["difference"] = difference(main.result, cases[i].result, train);
        if (!cases[i].fast) continue;
        other["peak_gflops"] = one_peak;
        other["memory_speedup"] = memory_gain;
      }
      print_json(out);
      continue;
    }

    print(fmt::format(
        "{}{} {}x{}, batch {}{}: {:.1f} GFLOP; {} threads, {}, FMA peak {:.0f} "
        "GFLOP/s; loaded in {:.2f} s",
        s ? "\n" : "", loaded.path, size.width, size.height, batch, train ? ", training step" : "",
        gflop, all_threads, ops::kernels::simd_target(), peak, load_seconds));
    print(fmt::format("{:<12}{:>9}{:>10}{:>10}{:>11}{:>10}{:>11}", "", "best s", "median s",
                      "GFLOP/s", "% of peak", "s/Mpixel", "memory MB"));
    for (const auto& one : cases) {
      const double own_peak = one.threads == all_threads ? peak : one_peak;
      print(fmt::format("{:<12}{:>9.3f}{:>10.3f}{:>10.1f}{:>11.1f}{:>10.2f}{:>11}", one.name,
                        one.best(), one.median(), gflop / one.median(),
                        100 * gflop / one.median() / own_peak, one.median() / megapixels,
                        one.memory_mb ? fmt::format("{:.0f}", *one.memory_mb) : "?"));
    }
    for (std::size_t i = 1; i < cases.size(); ++i) {
      std::string text =
          fmt::format("fast over {}: {:.2f}x", cases[i].name, cases[i].median() / main.median());
      if (main.memory_mb && cases[i].memory_mb)
        text += fmt::format(", memory {:.2f}x", *main.memory_mb / *cases[i].memory_mb);
      text += "; difference";
      const auto gaps = difference(main.result, cases[i].result, train);
      for (const auto& [name, value] : gaps.items())
        text += fmt::format(" {} {:.2g}", name, value.get<double>());
      if (cases[i].fast)
        text += fmt::format("; the FMA peak itself gains {:.2f}x, a pass over memory {:.2f}x",
                            peak / one_peak, memory_gain);
      print(text);
    }
    std::string header =
        fmt::format("{:<14}{:>10}{:>10}{:>11}", "stage", "ms", "GFLOP/s", "% of peak");
    for (std::size_t i = 1; i < cases.size(); ++i)
      header += fmt::format("{:>14}{:>8}", cases[i].name + " ms", "ratio");
    print(header);
    double named = 0;
    for (const auto& [name, values] : main.stages) {
      const double seconds = Case::median(values), work = stage_gflop[name];
      named += seconds;
      std::string row = fmt::format("{:<14}{:>10.1f}", name, 1e3 * seconds);
      row += work > 0
                 ? fmt::format("{:>10.1f}{:>11.1f}", work / seconds, 100 * work / seconds / peak)
                 : fmt::format("{:>21}", "");
      for (std::size_t i = 1; i < cases.size(); ++i)
        if (auto other = cases[i].stage(name))
          row += fmt::format("{:>14.1f}{:>8.2f}", 1e3 * *other, *other / seconds);
      print(row);
    }
    print(fmt::format("{:<14}{:>10.1f}", "rest", 1e3 * (main.median() - named)));
  }
  ops::set_fast(fast_before);
  return 0;
}

}  // namespace nmrf::cli
