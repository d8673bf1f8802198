// The results as one HTML page that needs nothing else: tables, histograms, pictures.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "eval/runner.h"

namespace nmrf {

struct HtmlReportOptions {
  std::string title = "Evaluation";
  std::size_t pictures = 100;  // images a data set that are shown, worst first
};

// The page. `about` is shown as a list of keys and values: versions, models, settings. Pictures are
// embedded from the files that ImageResult::pictures names.
std::string html_report(const std::vector<SetResults>& results, const nlohmann::json& about,
                        const HtmlReportOptions& options);

}  // namespace nmrf
