// Archives for the benchmarks' upload pages: the exact tree, names and formats, checked before and
// after.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "eval/method.h"

namespace nmrf {

struct SubmissionOptions {
  std::string benchmark;         // kitti2012, kitti2015, middlebury or eth3d
  std::string root;              // of the data set
  std::string resolution = "H";  // Middlebury: F, H or Q, one for all scenes
  std::string method = "NMRF";   // Middlebury: part of the file names
  bool partial = false;          // allow an incomplete data set (the benchmark will not)
  // Throws Error(kUsage).
  void validate() const;
};

// One pair and what becomes of it.
struct SubmissionItem {
  std::filesystem::path left, right;
  int width = 0, height = 0;
  std::string map_entry;   // in the archive: "disp_0/000000_10.png"
  std::string time_entry;  // with the run time; empty when the benchmark wants none
};

// Lists the pairs of the benchmark in the order of the archive and looks at every image: the number
// and names of the pairs and that both views have one size. Throws Error(kInput) naming what is
// missing.
std::vector<SubmissionItem> plan_submission(const SubmissionOptions& options);

// Writes the map (and then, for those benchmarks, the run time) below `folder`. Throws
// Error(kFailure) for a map of another size or with holes.
void write_submission_item(const std::filesystem::path& folder, const SubmissionItem& item,
                           const SubmissionOptions& options, const Prediction& prediction);
// True when the files of that item are there and hold a map of the right size.
bool submission_item_done(const std::filesystem::path& folder, const SubmissionItem& item);

// Puts the files below `folder` into an archive and checks it: opens it again and compares every
// entry with its file, and every map with its image's size. Throws Error(kFailure) naming the
// entry, and leaves no archive then.
void build_submission(const std::filesystem::path& archive, const std::filesystem::path& folder,
                      const std::vector<SubmissionItem>& items);

}  // namespace nmrf
