#include "eval/summary.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/check.h"

namespace nmrf {
namespace {

const ErrorStats* region_of(const ImageResult& image, const std::string& region) {
  const auto found = image.regions.find(region);
  return found == image.regions.end() ? nullptr : &found->second;
}

SummaryRow summarise_region(const SetResults& results, const MethodResults& method,
                            const std::string& region) {
  SummaryRow row{results.set.label, method.method, region, 0, 0, {}};
  std::vector<const ErrorStats*> stats;
  std::vector<double> weights;
  for (std::size_t i = 0; i < method.images.size(); ++i)
    if (const ErrorStats* found = region_of(method.images[i], region)) {
      stats.push_back(found);
      weights.push_back(method.weights[i]);
      row.pixels += found->pixels;
      row.images += found->pixels > 0;
    }
  for (const Metric& metric : all_metrics())
    row.values[metric.name] =
        aggregate(stats, metric, results.set.protocol.metrics.aggregation, weights);
  return row;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const std::size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle),
                   values.end());
  return values[middle];
}

nlohmann::json number(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

std::string csv_number(double value) {
  if (std::isnan(value)) return "";
  if (std::isinf(value)) return "inf";
  return fmt::format("{:.6g}", value);
}

// Quoted when it holds a comma, a quote or a line break.
std::string csv_text(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

const char* aggregation_text(Aggregation aggregation) {
  switch (aggregation) {
    case Aggregation::kImages:
      return "Each number is the mean of the images' own values";
    case Aggregation::kWeighted:
      return "Each number is the mean of the images' own values, weighted as the benchmark does";
    case Aggregation::kPixels:
      return "Each number is taken over the pixels of all images together";
  }
  return "";
}

const char* holes_text(Holes holes) {
  switch (holes) {
    case Holes::kCount:
      return "pixels without prediction count as invalid, not as bad";
    case Holes::kExclude:
      return "pixels without prediction, and predictions beyond the image's width, are left out "
             "(density tells)";
    case Holes::kFill:
      return "holes are filled with the background as KITTI does before comparing";
  }
  return "";
}

// Eight steps of height, for a histogram in one line of text.
std::string bars(const WinnerHistogram& histogram) {
  static const char* const kSteps[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const std::int64_t most = *std::max_element(histogram.counts.begin(), histogram.counts.end());
  std::string text;
  for (std::int64_t count : histogram.counts)
    text += kSteps[most == 0 ? 0 : (count * 8 + most - 1) / most];
  return text;
}

}  // namespace

std::vector<SummaryRow> summarise(const SetResults& results, bool every_region) {
  std::vector<std::string> regions = results.set.protocol.regions;
  std::set<std::string> known;
  for (const auto& method : results.methods)
    for (const auto& image : method.images)
      for (const auto& [name, stats] : image.regions)
        if (stats.pixels > 0) known.insert(name);
  if (every_region)
    for (const auto& name : known)
      if (std::find(regions.begin(), regions.end(), name) == regions.end()) regions.push_back(name);
  std::vector<SummaryRow> rows;
  for (const auto& region : regions)
    if (known.contains(region))
      for (const auto& method : results.methods)
        rows.push_back(summarise_region(results, method, region));
  return rows;
}

std::vector<MethodSummary> summarise_methods(const SetResults& results) {
  std::vector<MethodSummary> rows;
  for (const auto& method : results.methods) {
    MethodSummary row;
    row.set = results.set.label;
    row.method = method.method;
    row.images = method.images.size();
    row.failed = method.failed.size();
    row.missing = method.missing;
    std::vector<double> seconds;
    for (const auto& image : method.images) {
      seconds.push_back(image.seconds);
      row.mean_seconds += image.seconds / static_cast<double>(method.images.size());
      if (image.proposals) row.proposals.merge(*image.proposals);
      if (image.winners) row.winners.merge(*image.winners);
    }
    row.median_seconds = median(std::move(seconds));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string number_text(double value, const std::string& unit) {
  if (std::isnan(value)) return "n/a";
  if (std::isinf(value)) return "inf";
  return unit == "px" ? fmt::format("{:.3f}", value) : fmt::format("{:.2f}", value);
}

std::string text_table(const std::vector<std::vector<std::string>>& rows, std::size_t left) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += i < left ? fmt::format("{:<{}}  ", row[i], widths[i])
                       : fmt::format("{:>{}}  ", row[i], widths[i]);
    while (!line.empty() && line.back() == ' ') line.pop_back();
    text += line + "\n";
  }
  return text;
}

std::string describe(const SetResults& results) {
  const MetricOptions& m = results.set.protocol.metrics;
  std::string text = fmt::format("{}; {}", aggregation_text(m.aggregation), holes_text(m.holes));
  if (m.max_disparity > 0)
    text += fmt::format("; only truth below {:g} px counts", m.max_disparity);
  if (m.error_cap > 0)
    text += fmt::format("; an error above {:g} px counts as {:g} in EPE and RMS", m.error_cap,
                        m.error_cap);
  if (m.edges > 0) text += fmt::format("; edges: within {} px of a depth edge", m.edges);
  if (m.clip > 0) text += fmt::format("; predictions are clipped to [0, {:g}]", m.clip);
  if (m.clip == 0 && results.set.protocol.clip_to_ndisp)
    text += "; predictions are clipped to [0, ndisp] where calib.txt gives it";
  text += ".";
  if (results.visible_only > 0)
    text += fmt::format(
        "\n{} of {} images have truth for visible pixels only: their 'all' is their 'noc'.",
        results.visible_only, results.images);
  if (const auto empty = results.without_truth(); empty > 0)
    text += fmt::format("\n{} of {} images have no pixel with valid truth and do not count.", empty,
                        results.images);
  return text;
}

std::string text_report(const SetResults& results) {
  std::string text = fmt::format(
      "{}: {} image{} ({})\n", results.set.label, results.images, results.images == 1 ? "" : "s",
      results.set.options.root.empty() ? results.set.options.list : results.set.options.root);
  text += describe(results) + "\n";
  std::vector<std::vector<std::string>> rows{{"region", "method", "images"}};
  for (const auto& name : results.set.protocol.columns) {
    const Metric& metric = find_metric(name);
    rows[0].push_back(fmt::format("{} [{}]", metric.name, metric.unit));
  }
  for (const SummaryRow& row : summarise(results)) {
    rows.push_back({row.region, row.method, std::to_string(row.images)});
    for (const auto& name : results.set.protocol.columns)
      rows.back().push_back(number_text(row.values.at(name), find_metric(name).unit));
  }
  if (rows.size() > 1) text += text_table(rows, 2);
  for (const auto& method : results.methods) {
    if (method.missing > 0)
      text += fmt::format("{}: {} images are not there yet\n", method.method, method.missing);
    for (const auto& image : method.failed)
      text += fmt::format("{}: FAILED {}: {}\n", method.method, image.name, image.error);
  }
  return text;
}

std::string ablation_report(const SetResults& results) {
  const auto methods = summarise_methods(results);
  bool labels = false, winners = false;
  for (const auto& row : methods) {
    labels = labels || row.proposals.modals > 0;
    winners = winners || row.winners.total() > 0;
  }
  std::string region = "all";
  const auto rows = summarise(results, true);
  for (const SummaryRow& row : rows)
    if (row.region == results.set.protocol.headline_region) region = row.region;
  std::vector<std::vector<std::string>> table{
      {"method", "epe [px]", "bad1 [%]", "d1 [%]", "time [s]"}};
  if (labels)
    for (const char* title :
         {"labels 3px [%]", "labels 8px [%]", "best [px]", "seeds 8px [%]", "seeds 16px [%]"})
      table[0].push_back(title);
  if (winners) table[0].push_back("winner's p");
  for (const auto& method : methods) {
    std::map<std::string, double> values;
    for (const SummaryRow& row : rows)
      if (row.method == method.method && row.region == region) values = row.values;
    if (values.empty()) continue;
    table.push_back({method.method, number_text(values["epe"], "px"),
                     number_text(values["bad1"], "%"), number_text(values["d1"], "%"),
                     fmt::format("{:.3f}", method.median_seconds)});
    const ProposalStats& p = method.proposals;
    if (labels)
      for (const auto& text :
           {number_text(p.label_recall(0), "%"), number_text(p.label_recall(1), "%"),
            number_text(p.best_label_epe(), "px"), number_text(p.seed_recall(0), "%"),
            number_text(p.seed_recall(1), "%")})
        table.back().push_back(text);
    if (winners) table.back().push_back(number_text(method.winners.mean(), "px"));
  }
  if (table.size() < 2) return "";
  std::string text = fmt::format("{}, region {}, side by side\n", results.set.label, region);
  text += text_table(table, 1);
  text += "time: median of the images, matching alone.";
  if (labels)
    text +=
        " labels, seeds: superpixel modals of the truth with a candidate label (seed) less than "
        "that far away; best: mean distance of the nearest candidate label. Both pooled over all "
        "modals.";
  text += "\n";
  if (winners) {
    text +=
        "winner's p: posterior probability of the chosen label, mean; as a histogram from 0 to "
        "1:\n";
    for (const auto& method : methods)
      if (method.winners.total() > 0)
        text += fmt::format("  |{}| {}\n", bars(method.winners), method.method);
  }
  return text;
}

std::string zero_shot_report(const std::vector<SetResults>& results) {
  std::vector<std::vector<std::string>> table{{"method"}};
  std::vector<std::string> names;
  for (const auto& set : results)
    for (const auto& method : set.methods)
      if (std::find(names.begin(), names.end(), method.method) == names.end())
        names.push_back(method.method);
  for (const auto& name : names) table.push_back({name});
  table.push_back({"paper, trained on SceneFlow"});
  std::string notes;
  for (const ZeroShotColumn& column : zero_shot_columns()) {
    table[0].push_back(fmt::format("{} {} [%]", column.title, column.metric));
    const SetResults* found = nullptr;
    for (const auto& set : results)
      for (const char* dataset : column.datasets)
        if (set.set.options.name == dataset) found = &set;
    std::string region = column.region;
    std::map<std::string, double> values;
    if (found) {
      const auto rows = summarise(*found, true);
      const bool has_region = std::any_of(rows.begin(), rows.end(),
                                          [&](const auto& row) { return row.region == region; });
      if (!has_region) region = "all";
      for (const SummaryRow& row : rows)
        if (row.region == region) values[row.method] = row.values.at(column.metric);
      notes += fmt::format("  {}: {} images of {}, region {}\n", column.title, found->images,
                           found->set.label, region);
    }
    for (std::size_t i = 0; i < names.size(); ++i)
      table[i + 1].push_back(values.contains(names[i]) ? number_text(values[names[i]], "%")
                                                       : "no data");
    table.back().push_back(fmt::format("{:.1f}", column.paper));
  }
  return "zero-shot protocol (paper Table 3)\n" + text_table(table, 1) + notes;
}

std::string definitions(const std::vector<SetResults>& results) {
  std::set<std::string> shown, regions;
  for (const auto& set : results) {
    shown.insert(set.set.protocol.columns.begin(), set.set.protocol.columns.end());
    for (const SummaryRow& row : summarise(set)) regions.insert(row.region);
  }
  std::string text = "definitions (error = |d - truth| in px of the left view)\n";
  for (const Metric& metric : all_metrics())
    if (shown.contains(metric.name))
      text += fmt::format("  {:<10} {}\n", metric.name, metric.definition);
  const std::pair<const char*, const char*> meanings[] = {
      {"all", "every pixel with known truth"},
      {"noc", "those visible in both views"},
      {"occ", "those of all that are not visible in both views"},
      {"bg", "background: object map 0"},
      {"fg", "vehicles: object map > 0"},
      {"refl", "reflecting surfaces"},
      {"noc-bg", "visible background"},
      {"noc-fg", "visible vehicles"},
      {"noc-refl", "visible reflecting surfaces"},
      {"edges", "close to a depth edge: a step of the truth by more than 2 px"},
      {"matte", "textured surfaces, none of those below"},
      {"plain", "surfaces of one colour"},
      {"glossy", "surfaces with highlights"},
      {"reflecting", "surfaces that show their surroundings: panes, panels, mirrors"},
      {"glass", "surfaces that show what is behind them"},
      {"leaves", "foliage and whatever else light falls through"}};
  for (const auto& [name, meaning] : meanings)
    if (regions.contains(name)) text += fmt::format("  {:<10} {}\n", name, meaning);
  return text;
}

nlohmann::json json_report(const std::vector<SetResults>& results, nlohmann::json about) {
  nlohmann::json report;
  report["run"] = std::move(about);
  for (const Metric& metric : all_metrics())
    report["definitions"][metric.name] = {{"unit", metric.unit}, {"text", metric.definition}};
  report["sets"] = nlohmann::json::array();
  for (const auto& set : results) {
    nlohmann::json s{{"set", set.set.label},
                     {"dataset", to_json_object(set.set.options)},
                     {"metrics", to_json_object(set.set.protocol.metrics)},
                     {"protocol", describe(set)},
                     {"images", set.images}};
    for (const SummaryRow& row : summarise(set, true)) {
      auto& place = s["summary"][row.method][row.region];
      place["images"] = row.images;
      place["pixels"] = row.pixels;
      for (const auto& [name, value] : row.values) place[name] = number(value);
    }
    for (const MethodSummary& row : summarise_methods(set)) {
      auto& place = s["methods"][row.method];
      place = {{"images", row.images},
               {"failed", row.failed},
               {"missing", row.missing},
               {"median_seconds", row.median_seconds},
               {"mean_seconds", row.mean_seconds}};
      if (row.proposals.modals > 0)
        place["proposals"] = {{"modals", row.proposals.modals},
                              {"label_recall_3px", number(row.proposals.label_recall(0))},
                              {"label_recall_8px", number(row.proposals.label_recall(1))},
                              {"best_label_epe", number(row.proposals.best_label_epe())},
                              {"seed_recall_8px", number(row.proposals.seed_recall(0))},
                              {"seed_recall_16px", number(row.proposals.seed_recall(1))}};
      if (row.winners.total() > 0)
        place["winners"] = {{"mean", number(row.winners.mean())},
                            {"histogram", row.winners.to_json()}};
    }
    for (const auto& method : set.methods) {
      for (const auto& image : method.images) {
        nlohmann::json one{{"name", image.name},
                           {"size", {image.width, image.height}},
                           {"seconds", image.seconds}};
        for (const auto& [region, stats] : image.regions)
          for (const Metric& metric : all_metrics())
            one["regions"][region][metric.name] = number(metric.value(stats));
        s["per_image"][method.method].push_back(std::move(one));
      }
      for (const auto& image : method.failed)
        s["failures"][method.method].push_back({{"name", image.name}, {"error", image.error}});
    }
    report["sets"].push_back(std::move(s));
  }
  return report;
}

std::string csv_report(const std::vector<SetResults>& results) {
  std::string text = "set,method,image,region,pixels,seconds";
  for (const Metric& metric : all_metrics()) text += "," + metric.name;
  text += "\n";
  for (const auto& set : results) {
    const auto methods = summarise_methods(set);
    for (const SummaryRow& row : summarise(set, true)) {
      double seconds = 0;
      for (const auto& method : methods)
        if (method.method == row.method) seconds = method.median_seconds;
      text += fmt::format("{},{},*,{},{},{}", csv_text(row.set), csv_text(row.method), row.region,
                          row.pixels, csv_number(seconds));
      for (const Metric& metric : all_metrics())
        text += "," + csv_number(row.values.at(metric.name));
      text += "\n";
    }
    for (const auto& method : set.methods)
      for (const auto& image : method.images)
        for (const auto& [region, stats] : image.regions) {
          text +=
              fmt::format("{},{},{},{},{},{}", csv_text(set.set.label), csv_text(method.method),
                          csv_text(image.name), region, stats.pixels, csv_number(image.seconds));
          for (const Metric& metric : all_metrics()) text += "," + csv_number(metric.value(stats));
          text += "\n";
        }
  }
  return text;
}

}  // namespace nmrf
