#include "plot/run_plot.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "core/check.h"

namespace nmrf {
namespace {

// What a curve is called on paper.
std::string title_of(const std::string& name) {
  static const std::map<std::string, std::string> kTitles = {
      {"loss", "loss"},
      {"init", "initialisation loss"},
      {"proposal", "proposal loss"},
      {"search_place", "search: place"},
      {"search_choice", "search: choice"},
      {"epe", "EPE [px]"},
      {"bad1", "bad 1 [%]"},
      {"bad3", "bad 3 [%]"},
      {"d1", "D1 [%]"},
      {"lr", "learning rate"},
      {"grad_norm", "gradient norm"},
      {"samples_per_second", "samples a second"},
      {"data_wait", "share of time waiting for data"},
      {"skipped", "updates skipped"}};
  if (const auto found = kTitles.find(name); found != kTitles.end()) return found->second;
  if (name.rfind("coarse_", 0) == 0) return "inference, layer " + name.substr(7);
  if (name.rfind("fine_", 0) == 0) return "refinement, layer " + name.substr(5);
  return name;
}

// Every curve that a run has, in the order of the paper's stages.
std::vector<std::string> known_curves(const std::vector<RunLog>& runs) {
  std::set<std::string> names;
  for (const auto& run : runs) {
    for (const auto& [name, curve] : run.train) names.insert(name);
    for (const auto& [name, curve] : run.validation)
      if (name != "pairs") names.insert(name);
  }
  std::vector<std::string> ordered;
  auto take = [&](const std::string& prefix, bool exact) {
    for (const auto& name : names)
      if (exact ? name == prefix : name.rfind(prefix, 0) == 0) ordered.push_back(name);
  };
  for (const char* name : {"loss", "epe", "bad1", "bad3", "d1", "init", "proposal"})
    take(name, true);
  take("coarse_", false);
  take("search_", false);
  take("fine_", false);
  for (const char* name : {"lr", "grad_norm", "samples_per_second", "data_wait", "skipped"})
    take(name, true);
  for (const auto& name : names)
    if (std::find(ordered.begin(), ordered.end(), name) == ordered.end()) ordered.push_back(name);
  return ordered;
}

// Of the layers' losses only the last one's: the others look alike.
std::vector<std::string> usual_curves(const std::vector<std::string>& known) {
  std::vector<std::string> usual;
  for (const auto& name : known) {
    if (name == "samples_per_second" || name == "data_wait" || name == "skipped") continue;
    const auto family = name.substr(0, name.find('_') + 1);
    if ((family == "coarse_" || family == "fine_") && !usual.empty() &&
        usual.back().rfind(family, 0) == 0)
      usual.back() = name;
    else
      usual.push_back(name);
  }
  return usual;
}

bool named(const std::vector<std::string>& list, const std::string& name) {
  return std::any_of(list.begin(), list.end(),
                     [&](const std::string& item) { return item == name || item == "all"; });
}

void require_known(const std::vector<std::string>& wanted, const std::vector<std::string>& known) {
  for (const auto& name : wanted)
    check(name == "all" || named(known, name), ErrorKind::kUsage,
          "there is no curve '{}' in these runs; they have {}", name, fmt::join(known, ", "));
}

Curve within(const Curve& curve, const RunPlotOptions& options) {
  Curve kept;
  for (const auto& p : curve)
    if (p.x >= options.from && (options.to <= 0 || p.x <= options.to)) kept.push_back(p);
  return kept;
}

ChartPanel panel_of(const std::string& name, const std::vector<RunLog>& runs,
                    const RunPlotOptions& options) {
  ChartPanel panel;
  panel.title = title_of(name);
  panel.log_y = named(options.log_curves, name);
  // The rate and other settings have no noise to smooth.
  const double smooth = name == "lr" || name == "skipped" ? 0 : options.smooth;
  std::vector<ChartSeries> front;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Ink ink = line_ink(i);
    if (const auto found = runs[i].train.find(name); found != runs[i].train.end()) {
      if (smooth > 0)
        panel.series.push_back({within(found->second, options), {faded(ink, 0.3), 1}, false});
      // Smoothed over the whole run, so that a cut does not change the line.
      front.push_back({within(smoothed(found->second, smooth), options), {ink, 1.6}, false});
    }
    if (const auto found = runs[i].validation.find(name); found != runs[i].validation.end())
      front.push_back({within(found->second, options), {ink, 1.4, true}, true});
  }
  panel.series.insert(panel.series.end(), front.begin(), front.end());
  return panel;
}

std::vector<ChartMark> marks_of(const std::vector<RunLog>& runs) {
  constexpr Ink kGrey{107, 114, 128};
  bool same = true;
  for (const auto& run : runs) same = same && run.stage_starts == runs[0].stage_starts;
  std::vector<ChartMark> marks;
  for (std::size_t i = 0; i < (same ? std::size_t{1} : runs.size()); ++i)
    for (std::size_t s = 0; s < runs[i].stage_starts.size(); ++s)
      marks.push_back({static_cast<double>(runs[i].stage_starts[s]), std::to_string(s + 2),
                       same ? kGrey : faded(line_ink(i), 0.7)});
  std::stable_sort(marks.begin(), marks.end(),
                   [](const ChartMark& a, const ChartMark& b) { return a.x < b.x; });
  return marks;
}

}  // namespace

ChartSheet run_sheet(const std::vector<RunLog>& runs, const RunPlotOptions& options) {
  check(!runs.empty(), ErrorKind::kUsage, "there is no run to draw");
  const auto known = known_curves(runs);
  require_known(options.curves, known);
  require_known(options.log_curves, known);
  const bool all = std::count(options.curves.begin(), options.curves.end(), "all") > 0;
  const auto curves = all ? known : options.curves.empty() ? usual_curves(known) : options.curves;

  ChartSheet sheet;
  sheet.x_title = "updates";
  sheet.title = runs.size() == 1 ? runs[0].name : "";
  sheet.marks = marks_of(runs);
  bool validated = false;
  for (const auto& name : curves) {
    sheet.panels.push_back(panel_of(name, runs, options));
    for (const auto& run : runs) validated = validated || run.validation.count(name) > 0;
  }
  const Ink first = runs.size() == 1 ? line_ink(0) : Ink{75, 85, 99};
  if (runs.size() > 1)
    for (std::size_t i = 0; i < runs.size(); ++i)
      sheet.legend.push_back({runs[i].name, {line_ink(i), 2.4}});
  if (validated || runs.size() == 1) sheet.legend.push_back({"training", {first, 1.6}});
  if (options.smooth > 0)
    sheet.legend.push_back({"training, not smoothed", {faded(first, 0.3), 1}});
  if (validated) sheet.legend.push_back({"validation", {first, 1.4, true}, true});
  if (!sheet.marks.empty())
    sheet.legend.push_back({"start of stage 2, 3, ...", {sheet.marks[0].ink, 1, true}});
  return sheet;
}

}  // namespace nmrf
