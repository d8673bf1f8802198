// How each data set is evaluated unless the user says otherwise: the habits of its own benchmark.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "eval/metrics.h"

namespace nmrf {

struct Protocol {
  MetricOptions metrics;
  std::vector<std::string> columns;  // metrics to show, see all_metrics()
  std::vector<std::string> regions;  // to show where the data set knows them
  std::string headline;              // the metric and the region people quote
  std::string headline_region;
  bool clip_to_ndisp =
      false;  // clip predictions to the ndisp of the scene's calib.txt (Middlebury)
};

// The benchmark's own protocol; that of a plain list for names without one.
Protocol default_protocol(const std::string& dataset);

// The weight of a scene in the benchmark's own average (MiddEval3); 1 where there are none.
double scene_weight(const std::string& dataset, const std::string& scene);

// A data set to evaluate on.
struct EvalSet {
  std::string
      label;  // unique in a run, for tables and folders: "kitti2015", "middlebury-2005-full"
  DatasetOptions options;
  std::shared_ptr<const Dataset> dataset;
  Protocol protocol;
};

// "kitti2015", or with settings "middlebury-2005:size=full" or "sceneflow:split=test,pass=clean"
// (fields of DatasetOptions). `root` stands in where the settings name none. Throws Error(kUsage),
// Error(kInput).
EvalSet open_eval_set(const std::string& spec, const std::string& root);

// A column of the zero-shot table (paper Table 3).
struct ZeroShotColumn {
  const char* title;
  std::vector<const char*> datasets;  // the first one found below the root is taken
  const char* metric;
  const char* region;
  double paper;  // the paper's own result, %
};
const std::vector<ZeroShotColumn>& zero_shot_columns();

// The data sets of the zero-shot protocol found below `root`: all means over images, holes counted
// as wrong. A column without data gives an EvalSet without dataset. Throws when none is found.
std::vector<EvalSet> open_zero_shot(const std::string& root);

}  // namespace nmrf
