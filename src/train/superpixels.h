// LSC superpixels of an image, and a folder that remembers them.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <opencv2/core.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "data/modals.h"

namespace nmrf::train {

// Linear spectral clustering as the paper uses it: region size 10, ratio 0.075, 20 iterations, on
// the BGR image as it is. image: CV_8UC3 of any size >= 1 x 1. Returns labels >= 0, CV_32SC1, of
// the same size. The same image gives the same labels. Seconds per megapixel; OpenCV has one thread
// meanwhile.
cv::Mat superpixels(const cv::Mat& image);

// Superpixels kept in a folder, one file per image, named by the content of the image and the
// parameters: renamed or copied data find them again, changed data do not. Files appear by a
// rename, so any number of threads, processes and machines may share the folder. A file that is
// cut, changed or of another image is computed again and replaced. One object may be used by many
// threads.
class SuperpixelCache {
 public:
  // The folder is made when it is missing; throws when that fails. Empty: nothing is kept.
  explicit SuperpixelCache(std::filesystem::path folder);

  // As superpixels(image). Where the result cannot be kept (full disk, no right to write) the log
  // gets one warning and the work goes on.
  cv::Mat get(const cv::Mat& image) const;

  // The file of that image; nothing without a folder.
  std::filesystem::path path_of(const cv::Mat& image) const;

  std::int64_t hits() const { return hits_; }          // found in the folder
  std::int64_t computed() const { return computed_; }  // not found, or found damaged
  std::int64_t damaged() const { return damaged_; }

 private:
  void keep(const std::filesystem::path& path, const cv::Mat& labels) const;

  std::filesystem::path folder_;
  mutable std::atomic<std::int64_t> hits_{0}, computed_{0}, damaged_{0};
  mutable std::atomic<bool> warned_{false};
};

// A segmenter over a cache in that folder; empty: nothing is kept.
Segmenter cached_superpixels(const std::filesystem::path& folder);

// The content of a cache file: a mark, the digest of the rest, a lossless PNG of the labels (16
// bits, or 32 as four channels when there are more than 65,536 labels).
std::string encode_labels(const cv::Mat& labels);
// Nothing unless `content` is what encode_labels made of a map of that size.
std::optional<cv::Mat> decode_labels(std::string_view content, cv::Size size);

}  // namespace nmrf::train
