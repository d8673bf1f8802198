#include "cli/eval_confidence.h"

#include <fmt/format.h>

#include <cmath>

#include "cli/command.h"
#include "core/check.h"
#include "core/file.h"
#include "core/log.h"
#include "core/rng.h"
#include "eval/confidence.h"
#include "eval/error_fit.h"
#include "eval/results.h"
#include "eval/summary.h"
#include "matching/engine.h"
#include "matching/error_model.h"
#include "nmrf/opencv.h"
#include "plot/chart.h"
#include "weights/safetensors.h"

namespace nmrf::cli {
namespace {

constexpr std::size_t kMostSamples = 600000;  // pixels that a fit uses

float error_at(const FloatMap& map, const cv::Mat& truth, int y, int x) {
  return std::abs(map.at(y, x) - truth.at<float>(y, x));
}

MatchOptions how_at(std::optional<double> scale) {
  MatchOptions how;
  how.scale = scale;
  how.full_size = true;
  return how;
}

// What is measured of one confidence.
struct Row {
  const char* name;
  double threshold;                 // px; 0: the mean error
  const FloatMap Disparity::*from;  // negated when it is an expected error
  ConfidenceMeasure measure{threshold};
  bool probability() const { return threshold > 0; }
};

std::vector<Row> measured_rows(bool calibrated) {
  std::vector<Row> rows{{"posterior", 1, &Disparity::posterior}};
  if (calibrated) rows.push_back({"confidence", 1, &Disparity::confidence});
  rows.push_back({"posterior", 3, &Disparity::posterior});
  if (calibrated) rows.push_back({"confidence3", 3, &Disparity::confidence3});
  rows.push_back({"posterior", 0, &Disparity::posterior});
  if (calibrated) rows.push_back({"expected error", 0, &Disparity::expected_error});
  return rows;
}

void measure(const Disparity& result, const cv::Mat& truth, double greatest,
             std::vector<Row>& rows) {
  std::vector<float> errors, values;
  for (Row& row : rows) {
    errors.clear();
    values.clear();
    const FloatMap& map = result.*(row.from);
    const bool negate = row.from == &Disparity::expected_error;
    const bool posterior = row.from == &Disparity::posterior;
    for (int y = 0; y < truth.rows; ++y)
      for (int x = 0; x < truth.cols; ++x) {
        const float wanted = truth.at<float>(y, x);
        if (!std::isfinite(wanted) || (greatest > 0 && wanted >= greatest)) continue;
        errors.push_back(std::min(error_at(result.map, truth, y, x), 100.0f));
        const bool filled = posterior && (result.mask.at(y, x) & kFilled);
        values.push_back(filled ? 0 : negate ? -map.at(y, x) : map.at(y, x));
      }
    row.measure.add(errors, values);
  }
}

std::string watched(double threshold) {
  return threshold > 0 ? fmt::format("bad {:g} px, %", threshold) : "mean error, px";
}

std::string table(const EvalSet& set, const std::vector<Row>& rows) {
  std::vector<std::vector<std::string>> cells{{"confidence", "of what is left", "area", "optimal",
                                               "above it", "all pixels", "ECE, %", "says, %",
                                               "is, %"}};
  for (const Row& row : rows) {
    const ConfidenceMeasure& m = row.measure;
    const double area = m.area(m.curve()), best = m.area(m.optimal());
    auto number = [](double value) { return fmt::format("{:.3f}", value); };
    auto if_probability = [&](double value) {
      return row.probability() ? fmt::format("{:.1f}", value) : std::string("-");
    };
    cells.push_back({row.name, watched(row.threshold), number(area), number(best),
                     number(area - best), number(m.curve().front()),
                     if_probability(m.calibration_error()), if_probability(m.mean_confidence()),
                     if_probability(m.share_right())});
  }
  return fmt::format("{}: {} images\n{}", set.label, rows[0].measure.images(),
                     text_table(cells, 2));
}

constexpr const char* kMeaning =
    "area: mean of the sparsification curve (0 to 100 % of the pixels removed, least confident "
    "first; mean of the\n"
    "  images); optimal: the same with the greatest errors removed first; above it: what a better "
    "confidence could gain\n"
    "ECE: expected calibration error, 20 bins over all pixels; says: mean of the probabilities; "
    "is: "
    "share of errors\n"
    "  at most that many px. The posterior counts as 0 where a disparity was filled in. Errors "
    "above "
    "100 px count as 100.";

void draw(const std::filesystem::path& path, const std::string& title,
          const std::vector<Row>& rows) {
  constexpr Ink kBest{107, 114, 128};
  ChartSheet sheet;
  sheet.title = title;
  sheet.x_title = "pixels removed, % (curves); confidence, % (calibration)";
  sheet.legend = {{"posterior", {line_ink(0), 2}},
                  {"confidence", {line_ink(1), 2}},
                  {"optimal", {kBest, 1.4, true}}};
  for (double threshold : {1.0, 3.0, 0.0}) {
    ChartPanel curves{"left: " + watched(threshold), {}};
    ChartPanel calibration{fmt::format("errors up to {:g} px, %", threshold), {}};
    auto points = [](const ConfidenceMeasure::Curve& curve) {
      std::vector<cv::Point2d> result;
      for (int i = 0; i < ConfidenceMeasure::kSteps; ++i)
        result.emplace_back(100.0 * i / ConfidenceMeasure::kSteps,
                            curve[static_cast<std::size_t>(i)]);
      return result;
    };
    calibration.series.push_back({{{0, 0}, {100, 100}}, {kBest, 1.4, true}});
    for (const Row& row : rows) {
      if (row.threshold != threshold) continue;
      const Stroke stroke{line_ink(row.from == &Disparity::posterior ? 0 : 1), 2};
      if (curves.series.empty())
        curves.series.push_back({points(row.measure.optimal()), {kBest, 1.4, true}});
      curves.series.push_back({points(row.measure.curve()), stroke});
      ChartSeries bins{{}, stroke, true};
      for (const auto& bin : row.measure.bins())
        if (bin.count > 0)
          bins.points.emplace_back(
              100 * bin.sum / static_cast<double>(bin.count),
              100 * static_cast<double>(bin.right) / static_cast<double>(bin.count));
      calibration.series.push_back(bins);
    }
    sheet.panels.push_back(curves);
    if (threshold > 0) sheet.panels.push_back(calibration);
  }
  const cv::Size paper(1280, sheet_height(sheet, 1280));
  auto canvas = make_canvas(path, paper);
  draw_sheet(*canvas, paper, sheet);
  write_file(path, canvas->bytes());
}

nlohmann::json to_json(const EvalSet& set, const std::vector<Row>& rows) {
  nlohmann::json result{{"set", set.label}, {"images", rows[0].measure.images()}};
  for (const Row& row : rows) {
    const ConfidenceMeasure& m = row.measure;
    nlohmann::json entry{{"confidence", row.name},    {"watched", watched(row.threshold)},
                         {"curve", m.curve()},        {"optimal_curve", m.optimal()},
                         {"area", m.area(m.curve())}, {"optimal_area", m.area(m.optimal())}};
    if (row.probability()) {
      entry["ece"] = m.calibration_error();
      for (const auto& bin : m.bins())
        entry["bins"].push_back({{"count", bin.count}, {"right", bin.right}, {"sum", bin.sum}});
    }
    result["rows"].push_back(entry);
  }
  return result;
}

// Features and errors of pixels drawn from the pairs, each matched at `--scale 1` and `auto`.
bool collect(const ConfidenceSettings& s, const Matcher& matcher, ProgressLine& progress,
             ErrorSamples& samples) {
  std::size_t images = 0;
  for (const EvalSet& set : s.sets)
    images += std::min(s.count, set.dataset->size() - std::min(s.first, set.dataset->size()));
  const std::size_t share = kMostSamples / std::max<std::size_t>(1, 2 * images);
  Rng rng(1);
  Disparity result;
  std::vector<float> features;
  for (const EvalSet& set : s.sets) {
    const bool whole = each_image(s, set, progress, [&](const Sample& sample, std::size_t) {
      for (std::optional<double> scale : {std::optional<double>(1.0), std::optional<double>()}) {
        match_with_features(matcher, view(sample.left), view(sample.right), how_at(scale), result,
                            features);
        check(!features.empty(), ErrorKind::kUsage, "--fit needs the runtime on the CPU");
        const double chance =
            static_cast<double>(share) / static_cast<double>(sample.disparity.total());
        for (int y = 0; y < sample.disparity.rows; ++y)
          for (int x = 0; x < sample.disparity.cols; ++x) {
            if (!rng.chance(chance) || !std::isfinite(sample.disparity.at<float>(y, x))) continue;
            const std::size_t at =
                (static_cast<std::size_t>(y) * static_cast<std::size_t>(sample.disparity.cols) +
                 static_cast<std::size_t>(x)) *
                ErrorMlp::kFeatures;
            samples.features.insert(
                samples.features.end(), features.begin() + static_cast<std::ptrdiff_t>(at),
                features.begin() + static_cast<std::ptrdiff_t>(at + ErrorMlp::kFeatures));
            samples.errors.push_back(error_at(result.map, sample.disparity, y, x));
          }
      }
    });
    if (!whole) return false;
  }
  return true;
}

int fit(const ConfidenceSettings& s, const Matcher& matcher, ProgressLine& progress) {
  check(!s.model.starts_with("formula:"), ErrorKind::kUsage,
        "--fit adds an error model to a model file, which {} is not", s.model);
  ErrorSamples samples;
  if (!collect(s, matcher, progress, samples)) return kExitInterrupted;
  const ErrorMlp mlp = fit_error_model(samples);
  TensorFile file = read_tensor_file(s.model);
  file.metadata[kErrorModelKey] = nmrf::to_json(mlp).dump();
  write_safetensors(s.fit, file.tensors, file.metadata);
  print(fmt::format("{}: error model fitted to {} pixels, cross-entropy {:.4f} nats", s.fit,
                    samples.size(), cross_entropy(mlp, samples)));
  return 0;
}

}  // namespace

int run_confidence(const ConfidenceSettings& s) {
  const Matcher matcher = Matcher::load(s.model, s.matcher);
  watch_interrupts();
  ProgressLine progress(!s.quiet);
  if (!s.fit.empty()) return fit(s, matcher, progress);

  nlohmann::json report = nlohmann::json::array();
  std::string text;
  for (const EvalSet& set : s.sets) {
    std::vector<Row> rows;
    Disparity result;
    const bool whole = each_image(s, set, progress, [&](const Sample& sample, std::size_t) {
      matcher.match(view(sample.left), view(sample.right), how_at(s.scale), result);
      if (rows.empty()) rows = measured_rows(!result.expected_error.empty());
      measure(result, sample.disparity, set.protocol.metrics.max_disparity, rows);
    });
    if (!whole) return kExitInterrupted;
    check(!rows.empty(), ErrorKind::kInput, "{}: holds no image", set.label);
    text += table(set, rows) + "\n";
    report.push_back(to_json(set, rows));
    if (!s.folder.empty()) make_folder(s.folder);
    const auto chart = s.folder / ("confidence-" + file_name_for(set.label) + ".svg");
    draw(chart, "Confidence on " + set.label, rows);
    log_info("chart: {}", chart.string());
  }
  print_study(s, text + kMeaning, report);
  return 0;
}

}  // namespace nmrf::cli
