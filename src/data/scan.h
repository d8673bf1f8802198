// Looking for files of a data set: collecting pairs from the listings of io/folders.h.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "io/folders.h"

namespace nmrf::scan {

// Throws Error(kUsage) listing `allowed` unless `value` is one of them.
void check_choice(const DatasetOptions& options, const char* setting, const std::string& value,
                  const std::vector<const char*>& allowed);

// Collects pairs, leaves out those whose files are missing, and says so at the end.
class Collector {
 public:
  Collector(const DatasetOptions& options, bool needs_truth)
      : options_(options), needs_truth_(needs_truth) {}
  // Keeps `ref` when its images (and its truth, if needed) exist. `right` and `disparity` of `ref`
  // name the expected path even where the file is missing, for the message.
  void add(SampleRef ref);
  // Remembers a place that was looked at, for the message of an empty result.
  void looked_for(std::string pattern) { patterns_.push_back(std::move(pattern)); }
  // Throws Error(kInput) naming the patterns when nothing was kept.
  std::vector<SampleRef> finish();

 private:
  const DatasetOptions& options_;
  bool needs_truth_;
  std::vector<SampleRef> refs_;
  std::vector<std::string> patterns_;
  std::size_t left_out_ = 0;
  std::filesystem::path first_missing_;
};

}  // namespace nmrf::scan
