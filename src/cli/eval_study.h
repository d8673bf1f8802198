// What the special forms of `nmrf eval` share: one model on the images of some sets, a table and
// JSON.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "core/check.h"
#include "core/file.h"
#include "eval/protocol.h"
#include "nmrf/matcher.h"

namespace nmrf::cli {

struct StudySettings {
  std::vector<EvalSet> sets;
  std::string model;
  MatcherOptions matcher;
  std::optional<double> scale;
  std::size_t first = 0, count = SIZE_MAX;  // images of each set, or sequences
  std::string json;                         // file, "-" for stdout, or empty
  bool quiet = false;
};

// Calls use(sample, index) for the images of a set that are asked for, all of which must have a
// true disparity; false when interrupted.
template <class Use>
bool each_image(const StudySettings& s, const EvalSet& set, ProgressLine& progress,
                const Use& use) {
  const std::size_t begin = std::min(s.first, set.dataset->size()),
                    end = begin + std::min(s.count, set.dataset->size() - begin);
  for (std::size_t i = begin; i < end; ++i) {
    if (interrupted()) return false;
    progress.show(fmt::format("{}  {}/{}", set.label, i + 1 - begin, end - begin));
    const Sample sample = set.dataset->load(i);
    check(!sample.disparity.empty(), ErrorKind::kInput, "{}: has no true disparity", sample.name);
    use(sample, i);
  }
  progress.clear();
  return true;
}

// The text, and the report where it was asked for.
inline void print_study(const StudySettings& s, const std::string& text,
                        const nlohmann::json& report) {
  if (s.json == "-") return print(report.dump(1));
  print(text);
  if (!s.json.empty()) write_file(s.json, report.dump(1));
}

}  // namespace nmrf::cli
