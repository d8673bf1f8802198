#include "eval/protocol.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>

#include "core/check.h"
#include "core/log.h"

namespace nmrf {
namespace {

Protocol sceneflow_protocol() {
  Protocol p;
  p.metrics.max_disparity = 192;
  p.columns = {"epe", "bad1", "bad2", "bad3", "d1", "density"};
  p.regions = {"all"};
  p.headline = "epe";
  p.headline_region = "all";
  return p;
}

// The 2012 kit takes the mean of the images' rates, the 2015 kit the rate of all pixels.
Protocol kitti_protocol(bool of_2012) {
  Protocol p;
  p.metrics.holes = Holes::kFill;
  p.metrics.objects = !of_2012;
  p.metrics.aggregation = of_2012 ? Aggregation::kImages : Aggregation::kPixels;
  if (of_2012)
    p.columns = {"bad2", "bad3", "bad4", "bad5", "epe", "d1", "density"};
  else
    p.columns = {"d1", "epe", "bad1", "bad2", "bad3", "density"};
  p.regions = {"all", "bg", "fg", "noc", "noc-bg", "noc-fg", "refl", "noc-refl"};
  p.headline = of_2012 ? "bad3" : "d1";
  p.headline_region = of_2012 ? "noc" : "all";
  return p;
}

Protocol middlebury_protocol(bool weighted) {
  Protocol p;
  p.metrics.aggregation = weighted ? Aggregation::kWeighted : Aggregation::kImages;
  p.clip_to_ndisp = true;
  p.columns = {"bad0.5", "bad1", "bad2", "bad4", "epe",     "rms",
               "a50",    "a90",  "a95",  "a99",  "invalid", "totbad2"};
  p.regions = {"noc", "all"};
  p.headline = "bad2";
  p.headline_region = "noc";
  return p;
}

Protocol eth3d_protocol() {
  Protocol p;
  p.metrics.holes = Holes::kExclude;
  p.columns = {"bad0.5", "bad1", "bad2", "bad4", "epe",    "rms",
               "a50",    "a90",  "a95",  "a99",  "density"};
  p.regions = {"noc", "all"};
  p.headline = "bad1";
  p.headline_region = "noc";
  return p;
}

Protocol plain_protocol() {
  Protocol p;
  p.columns = {"epe", "bad0.5", "bad1", "bad2", "bad3", "d1", "a90", "density"};
  p.regions = {"all", "noc", "occ"};
  p.headline = "epe";
  p.headline_region = "all";
  return p;
}

// Letters, digits, dot and dash only, for folder names.
std::string tidy(const std::string& text) {
  std::string result;
  for (char c : text) {
    const bool keep = std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-';
    if (keep)
      result += c;
    else if (!result.empty() && result.back() != '-')
      result += '-';
  }
  while (!result.empty() && result.back() == '-') result.pop_back();
  return result;
}

}  // namespace

Protocol default_protocol(const std::string& dataset) {
  if (dataset == "sceneflow" || dataset == "flyingthings3d" || dataset == "monkaa" ||
      dataset == "driving")
    return sceneflow_protocol();
  if (dataset == "kitti2012") return kitti_protocol(true);
  if (dataset == "kitti2015" || dataset == "kitti-mix") return kitti_protocol(false);
  if (dataset == "middlebury-f" || dataset == "middlebury-h" || dataset == "middlebury-q")
    return middlebury_protocol(true);
  if (dataset.starts_with("middlebury")) return middlebury_protocol(false);
  if (dataset == "eth3d") return eth3d_protocol();
  return plain_protocol();
}

double scene_weight(const std::string& dataset, const std::string& scene) {
  if (dataset != "middlebury-f" && dataset != "middlebury-h" && dataset != "middlebury-q") return 1;
  static const std::map<std::string, double> halves{
      {"PianoL", 0.5}, {"Playroom", 0.5}, {"Playtable", 0.5}, {"Shelves", 0.5}, {"Vintage", 0.5}};
  const auto found = halves.find(scene);
  return found == halves.end() ? 1 : found->second;
}

EvalSet open_eval_set(const std::string& spec, const std::string& root) {
  EvalSet set;
  const auto colon = spec.find(':');
  set.options.name = spec.substr(0, colon);
  set.options.root = root;
  set.label = set.options.name;
  // The literature's number is that of the test split.
  if (set.options.name == "sceneflow" || set.options.name == "flyingthings3d")
    set.options.split = "test";
  std::string rest = colon == std::string::npos ? "" : spec.substr(colon + 1);
  while (!rest.empty()) {
    const auto comma = rest.find(',');
    const std::string setting = rest.substr(0, comma);
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
    if (setting.empty()) continue;
    try {
      set_field(set.options, setting);
    } catch (const Error& error) {
      fail(ErrorKind::kUsage, "data set '{}': {}", spec, error.what());
    }
    const auto equals = setting.find('=');
    const std::string key = setting.substr(0, equals), value = setting.substr(equals + 1);
    // A list goes by its file's name: its folders say nothing about the result.
    if (key == "list")
      set.label += "-" + std::filesystem::path(value).filename().string();
    else if (key != "root")
      set.label += "-" + value;
  }
  set.label = tidy(set.label);
  set.protocol = default_protocol(set.options.name);
  set.dataset = open_dataset(set.options);
  check(!set.dataset->ref(0).disparity.empty(), ErrorKind::kUsage,
        "data set '{}': this split has no true disparities to compare with", spec);
  return set;
}

const std::vector<ZeroShotColumn>& zero_shot_columns() {
  // The regions are those of the published evaluation: KITTI's disp_occ, Middlebury's mask0nocc,
  // all known pixels of ETH3D.
  static const std::vector<ZeroShotColumn> columns{
      {"KITTI-12", {"kitti2012"}, "d1", "all", 4.2},
      {"KITTI-15", {"kitti2015"}, "d1", "all", 5.1},
      {"Middlebury",
       {"middlebury-h", "middlebury-f", "middlebury-q", "middlebury-2014"},
       "bad2",
       "noc",
       7.5},
      {"ETH3D", {"eth3d"}, "bad1", "all", 3.8},
  };
  return columns;
}

std::vector<EvalSet> open_zero_shot(const std::string& root) {
  std::vector<EvalSet> sets;
  bool any = false;
  std::string reasons;
  for (const ZeroShotColumn& column : zero_shot_columns()) {
    EvalSet found;
    found.label = column.title;
    for (const char* name : column.datasets) {
      try {
        found = open_eval_set(name, root);
        break;
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::kInput) throw;
        reasons += fmt::format("\n  {}", error.what());
      }
    }
    found.protocol.metrics.aggregation = Aggregation::kImages;
    found.protocol.metrics.holes = Holes::kFill;
    found.protocol.headline = column.metric;
    found.protocol.headline_region = column.region;
    if (found.dataset)
      any = true;
    else
      log_warning("zero-shot protocol: no data for {} below {}", column.title, root);
    sets.push_back(std::move(found));
  }
  check(any, ErrorKind::kInput,
        "zero-shot protocol: none of its data sets is below {}. What was looked for:{}", root,
        reasons);
  return sets;
}

}  // namespace nmrf
