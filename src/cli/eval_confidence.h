// `nmrf eval --confidence`: what confidences are worth, and fitting the model that gives them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "eval/protocol.h"
#include "nmrf/matcher.h"

namespace nmrf::cli {

struct ConfidenceSettings {
  std::vector<EvalSet> sets;
  std::string model;
  MatcherOptions matcher;
  std::optional<double> scale;
  std::size_t first = 0, count = SIZE_MAX;  // images of each set
  std::filesystem::path folder;             // of the charts
  std::string json;                         // file, "-" for stdout, or empty
  std::string fit;                          // model file to write; empty: measure only
  bool quiet = false;
};

// Measures (or, with `fit`, fits on) all sets; prints tables and draws a chart for each. Returns
// the exit code.
int run_confidence(const ConfidenceSettings& settings);

}  // namespace nmrf::cli
