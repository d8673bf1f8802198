// Photographs as textures: found once, decoded when first needed, with mip levels.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <opencv2/core.hpp>
#include <string>
#include <vector>

#include "synth/vec.h"

namespace nmrf::synth {

// One decoded photograph; level 0 first, each level half the size of the one before.
class Photo {
 public:
  explicit Photo(const cv::Mat& bgr);
  // Linear colour at (u, v) with v in [0, 1] from top to bottom and u in [0, aspect()], mirrored
  // outside; `width` is the size of a pixel in the same units.
  Vec3 color(float u, float v, float width) const;
  float aspect() const { return aspect_; }

 private:
  std::vector<cv::Mat> levels_;  // CV_8UC3
  float aspect_ = 1;
};

// The images below a folder in a fixed order. Decoding happens on first use and is kept, so that
// all threads and all pairs share one copy.
class PhotoLibrary {
 public:
  // The library of `folder`, one per process and folder. Throws Error(kInput) when the folder is
  // missing or holds no image.
  static std::shared_ptr<PhotoLibrary> open(const std::string& folder);

  std::size_t size() const { return slots_.size(); }
  // The photograph number `index` modulo size(). A file that cannot be decoded or is smaller than
  // 256 pixels is replaced by the next good one, so the choice does not depend on who asks first.
  const Photo& photo(std::uint32_t index);

 private:
  explicit PhotoLibrary(const std::string& folder);
  const Photo* load(std::size_t index);

  struct Slot {
    std::filesystem::path path;
    std::once_flag once;
    std::unique_ptr<Photo> photo;
  };
  std::string folder_;
  std::vector<std::unique_ptr<Slot>> slots_;
};

}  // namespace nmrf::synth
