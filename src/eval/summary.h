// From results image by image to the numbers of a table, and the table as text, JSON and CSV.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "eval/runner.h"

namespace nmrf {

// One method on one region of one data set.
struct SummaryRow {
  std::string set, method, region;
  std::size_t images = 0;
  std::int64_t pixels = 0;
  std::map<std::string, double> values;  // by metric; NaN = no truth, infinity = no prediction
};

// What else was seen of a method on a data set.
struct MethodSummary {
  std::string set, method;
  std::size_t images = 0, failed = 0, missing = 0;
  double median_seconds = 0, mean_seconds = 0;
  ProposalStats proposals;  // pooled over all modals
  WinnerHistogram winners;
};

// Regions in the protocol's order (all of them when `every_region`), methods in theirs.
std::vector<SummaryRow> summarise(const SetResults& results, bool every_region = false);
std::vector<MethodSummary> summarise_methods(const SetResults& results);

// The value of one metric, "n/a" without truth.
std::string number_text(double value, const std::string& unit);

// Columns aligned, the first `left` of them to the left; the first row is the heading.
std::string text_table(const std::vector<std::vector<std::string>>& rows, std::size_t left);

// What was counted and how, in sentences: one a line.
std::string describe(const SetResults& results);
// The table of one data set with what it means.
std::string text_report(const SetResults& results);
// Proposal quality, time and winner probabilities side by side; empty when there is nothing to
// show.
std::string ablation_report(const SetResults& results);
// Paper Table 3 with its own row below.
std::string zero_shot_report(const std::vector<SetResults>& results);
// The definitions of the metrics the tables show.
std::string definitions(const std::vector<SetResults>& results);

// Everything, image by image; `about` is stored under "run".
nlohmann::json json_report(const std::vector<SetResults>& results, nlohmann::json about);
// A line a data set, method, image and region, and the aggregates with image "*".
std::string csv_report(const std::vector<SetResults>& results);

}  // namespace nmrf
