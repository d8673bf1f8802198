// Looking for files of a data set: sorted listings, tolerant folder names, collecting pairs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace nmrf::scan {

// Names of the plain files (folders) directly in `folder`, sorted; hidden ones left out; links are
// followed. Empty when the folder does not exist. Throws Error(kInput) when it cannot be read.
std::vector<std::string> file_names(const std::filesystem::path& folder);
std::vector<std::string> folder_names(const std::filesystem::path& folder);

// Every folder of that name at any depth below `root`, relative to it, sorted. Links to folders are
// followed to a depth of 12, so that a loop of links ends.
std::vector<std::filesystem::path> folders_called(const std::filesystem::path& root,
                                                  const std::string& name);
// `root` itself (as ".") and every folder below it, relative to it, sorted.
std::vector<std::filesystem::path> folders_below(const std::filesystem::path& root);

// The child of `folder` called like the first possible of `names`: exactly, else without regard to
// case. Empty when there is none.
std::filesystem::path child(const std::filesystem::path& folder,
                            const std::vector<const char*>& names);

// The first of `stem`.png, .webp, .jpg, .jpeg, .ppm, .pgm, .bmp, .tif, .tiff that exists, else
// empty.
std::filesystem::path image_file(const std::filesystem::path& stem);
// True for the extension (with the dot, any case) of an image file.
bool is_image_extension(const std::string& extension);

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
