// `nmrf eval --confidence`: what confidences are worth, and fitting the model that gives them.
#pragma once

#include <filesystem>

#include "cli/eval_study.h"

namespace nmrf::cli {

struct ConfidenceSettings : StudySettings {
  std::filesystem::path folder;  // of the charts
  std::string fit;               // model file to write; empty: measure only
};

// Measures (or, with `fit`, fits on) all sets; prints tables and draws a chart for each. Returns
// the exit code.
int run_confidence(const ConfidenceSettings& settings);

}  // namespace nmrf::cli
