// What the commands that work through pairs do with each: progress, report, and what fails.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/command.h"
#include "io/pair_source.h"

namespace nmrf::cli {

class PairBatch {
 public:
  using Work = std::function<nlohmann::json()>;
  using Print = std::function<void(const InputPair&, const nlohmann::json&)>;

  // `many`: a pair that cannot be used is reported and passed over, instead of ending the command.
  PairBatch(bool many, bool json, bool quiet)
      : many_(many), json_(json), progress_(many && !quiet) {}

  // Shows `line`, does the work and prints its report: as JSON, or by `print_report`.
  void process(const InputPair& pair, const std::string& line, const Work& work,
               const Print& print_report);
  std::int64_t done() const { return done_; }
  // Throws Error(kInput) naming the pairs that failed, if there are any.
  void check_all_done() const;

 private:
  bool many_, json_;
  ProgressLine progress_;
  std::int64_t done_ = 0;
  std::vector<std::string> failed_;
};

}  // namespace nmrf::cli
