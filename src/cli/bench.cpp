#include "cli/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/quantile.h"
#include "core/rng.h"
#include "kernels/peak.h"
#include "nmrf/matcher.h"

namespace nmrf::cli {
namespace {

class RuntimeSubject : public BenchSubject {
 public:
  RuntimeSubject(const BenchSettings& settings, int threads)
      : matcher_(Matcher::load(settings.model, options_of(settings, threads))) {
    how_.scale = settings.scale;
  }
  std::vector<float> run(const BenchScene& scene) override {
    matcher_.match(scene.left, scene.right, how_, result_);
    return {result_.map.begin(), result_.map.end()};
  }
  void release() override { matcher_.release_idle(); }
  std::string arithmetic() const override {
    return matcher_.precision() == Precision::kInt8 ? "int8" : "float32";
  }

 private:
  static MatcherOptions options_of(const BenchSettings& settings, int threads) {
    MatcherOptions options;
    options.threads = threads;
    options.set = settings.set;
    options.precision = settings.precision;
    return options;
  }
  Matcher matcher_;
  MatchOptions how_;
  Disparity result_;
};

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto n = values.size();
  if (n == 0) return 0;
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

nlohmann::json to_json(const BenchCase& one, const BenchFigures& figures) {
  nlohmann::json out;
  out["seconds"] = {{"best", one.best()}, {"median", one.median()}};
  out["gflops"] = figures.gflop / one.median();
  out["memory_mb"] = one.memory_mb ? nlohmann::json(*one.memory_mb) : nlohmann::json();
  out["threads"] = one.threads;
  for (const auto& [name, values] : one.stages) {
    const double seconds = median_of(values);
    auto& stage = out["stages"][name];
    stage["ms"] = 1e3 * seconds;
    const auto work = figures.stage_gflop.find(name);
    if (work != figures.stage_gflop.end() && work->second > 0)
      stage["gflops"] = work->second / seconds;
  }
  return out;
}

// How far two results are apart: of maps the largest and the median difference in pixels and the
// share above 0.01 px, of training steps the relative differences of loss and gradient norm.
nlohmann::json difference(const std::vector<float>& a, const std::vector<float>& b, bool train) {
  if (a.size() != b.size() || a.empty()) return nullptr;
  std::vector<double> gaps(a.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    gaps[i] = a[i] == b[i] ? 0 : std::abs(static_cast<double>(a[i]) - b[i]);
  if (train)
    return {{"loss", gaps[0] / std::abs(b[0])}, {"gradient_norm", gaps[1] / std::abs(b[1])}};
  const auto above = std::count_if(gaps.begin(), gaps.end(), [](double gap) { return gap > 0.01; });
  const double largest = *std::max_element(gaps.begin(), gaps.end());
  return {{"largest_px", largest},
          {"median_px", quantile(gaps, 0.5)},
          {"share_above_0.01_px", static_cast<double>(above) / static_cast<double>(gaps.size())}};
}

double megapixels(const BenchFigures& f) {
  return 1e-6 * f.settings.batch * f.size.width * f.size.height;
}

}  // namespace

double BenchCase::best() const { return *std::min_element(seconds.begin(), seconds.end()); }
double BenchCase::median() const { return median_of(seconds); }
std::optional<double> BenchCase::stage(const std::string& wanted) const {
  for (const auto& [name, values] : stages)
    if (name == wanted) return median_of(values);
  return std::nullopt;
}

std::unique_ptr<BenchSubject> make_runtime_subject(const BenchSettings& settings, int threads) {
  return std::make_unique<RuntimeSubject>(settings, threads);
}

BenchScene make_bench_scene(ImageSize size, double max_disp) {
  const auto [w, h] = size;
  BenchScene scene{Image(w, h), Image(w, h), FloatMap(w, h)};
  // Noise of three scales, of which each value is the sum.
  Rng rng(1);
  std::vector<float> texture(static_cast<std::size_t>(w) * static_cast<std::size_t>(h) * 3);
  for (int scale : {1, 4, 16}) {
    const int columns = w / scale + 1, rows = h / scale + 1;
    std::vector<float> noise(static_cast<std::size_t>(columns) * static_cast<std::size_t>(rows) *
                             3);
    for (float& value : noise) value = static_cast<float>(rng.uniform(0, 255.0 / 3));
    std::size_t i = 0;
    for (int y = 0; y < h; ++y)
      for (int x = 0; x < w; ++x)
        for (int c = 0; c < 3; ++c)
          texture[i++] +=
              noise[static_cast<std::size_t>((y / scale * columns + x / scale) * 3 + c)];
  }
  std::transform(texture.begin(), texture.end(), scene.right.data(),
                 [](float v) { return static_cast<std::uint8_t>(v); });
  const double near = std::min(0.5 * max_disp, w / 4.0), far = 0.02 * max_disp;
  for (int y = 0; y < h; ++y) {
    const int shift = static_cast<int>(far + (near - far) * y / std::max(1, h - 1));
    for (int x = 0; x < w; ++x) {
      const std::uint8_t* from = scene.right.row(y) + 3 * std::max(0, x - shift);
      std::copy(from, from + 3, scene.left.row(y) + 3 * x);
      scene.truth.at(y, x) = static_cast<float>(shift);
    }
  }
  return scene;
}

nlohmann::json bench_json(const BenchFigures& f, const std::vector<BenchCase>& cases) {
  const BenchCase& main = cases[0];
  nlohmann::json out = to_json(main, f);
  out["model"] = f.model;
  out["size"] = {f.size.width, f.size.height};
  out["batch"] = f.settings.batch;
  out["train"] = f.settings.train;
  out["runs"] = f.runs;
  out["gflop"] = f.gflop;
  out["peak_gflops"] = f.peak;
  out["percent_of_peak"] = 100 * f.gflop / main.median() / f.peak;
  out["simd"] = kernels::simd_target();
  out["arithmetic"] = main.subject->arithmetic();
  out["load_seconds"] = f.load_seconds;
  out["seconds_per_megapixel"] = main.median() / megapixels(f);
  for (std::size_t i = 1; i < cases.size(); ++i) {
    auto& other = out[cases[i].key];
    other = to_json(cases[i], f);
    other["speedup"] = cases[i].median() / main.median();
    other["difference"] = difference(main.result, cases[i].result, f.settings.train);
    if (cases[i].threads == main.threads) continue;
    other["peak_gflops"] = f.one_peak;
    other["memory_speedup"] = f.memory_gain;
  }
  return out;
}

std::string bench_table(const BenchFigures& f, const std::vector<BenchCase>& cases) {
  const BenchCase& main = cases[0];
  std::string text = fmt::format(
      "{} {}x{}, batch {}{}: {:.1f} GFLOP; {} threads, {}, {}, FMA peak {:.0f} GFLOP/s; loaded in "
      "{:.2f} s\n",
      f.model, f.size.width, f.size.height, f.settings.batch,
      f.settings.train ? ", training step" : "", f.gflop, main.threads, main.subject->arithmetic(),
      kernels::simd_target(), f.peak, f.load_seconds);
  text += fmt::format("{:<12}{:>9}{:>10}{:>10}{:>11}{:>10}{:>11}\n", "", "best s", "median s",
                      "GFLOP/s", "% of peak", "s/Mpixel", "memory MB");
  for (const auto& one : cases) {
    const double own_peak = one.threads == main.threads ? f.peak : f.one_peak;
    text += fmt::format("{:<12}{:>9.3f}{:>10.3f}{:>10.1f}{:>11.1f}{:>10.2f}{:>11}\n", one.name,
                        one.best(), one.median(), f.gflop / one.median(),
                        100 * f.gflop / one.median() / own_peak, one.median() / megapixels(f),
                        one.memory_mb ? fmt::format("{:.0f}", *one.memory_mb) : "?");
  }
  for (std::size_t i = 1; i < cases.size(); ++i) {
    text += fmt::format("{} over {}: {:.2f}x", main.name, cases[i].name,
                        cases[i].median() / main.median());
    if (main.memory_mb && cases[i].memory_mb)
      text += fmt::format(", memory {:.2f}x", *main.memory_mb / *cases[i].memory_mb);
    text += "; difference";
    const auto gaps = difference(main.result, cases[i].result, f.settings.train);
    for (const auto& [name, value] : gaps.items())
      text += fmt::format(" {} {:.2g}", name, value.get<double>());
    if (cases[i].threads != main.threads)
      text += fmt::format("; the FMA peak itself gains {:.2f}x, a pass over memory {:.2f}x",
                          f.peak / f.one_peak, f.memory_gain);
    text += "\n";
  }
  text += fmt::format("{:<14}{:>10}{:>10}{:>11}", "stage", "ms", "GFLOP/s", "% of peak");
  for (std::size_t i = 1; i < cases.size(); ++i)
    text += fmt::format("{:>14}{:>8}", cases[i].name + " ms", "ratio");
  text += "\n";
  double named = 0;
  for (const auto& [name, values] : main.stages) {
    const auto found = f.stage_gflop.find(name);
    const double seconds = median_of(values);
    const double work = found == f.stage_gflop.end() ? 0 : found->second;
    named += seconds;
    text += fmt::format("{:<14}{:>10.1f}", name, 1e3 * seconds);
    text += work > 0
                ? fmt::format("{:>10.1f}{:>11.1f}", work / seconds, 100 * work / seconds / f.peak)
                : fmt::format("{:>21}", "");
    for (std::size_t i = 1; i < cases.size(); ++i)
      if (auto other = cases[i].stage(name))
        text += fmt::format("{:>14.1f}{:>8.2f}", 1e3 * *other, *other / seconds);
    text += "\n";
  }
  return text + fmt::format("{:<14}{:>10.1f}", "rest", 1e3 * (main.median() - named));
}

}  // namespace nmrf::cli
