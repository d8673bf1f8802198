// A stereo pair with its truth in memory, and the reference that says where it lies on the disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <opencv2/core.hpp>
#include <string>
#include <vector>

namespace nmrf {

// One training or evaluation example. All maps that are not empty have the size of the images
// (`modals` apart).
struct Sample {
  cv::Mat left, right;  // CV_8UC3, BGR
  // The same pixels before colours and erased patches were changed; empty unless augmentation was
  // asked to keep them (AugmentOptions::keep_clean).
  cv::Mat clean_left, clean_right;
  // CV_32FC1, pixels, of the left view, d = x_left - x_right >= 0; +infinity = unknown. Empty when
  // the data set gives no truth (test splits).
  cv::Mat disparity;
  // CV_32FC1, pixels, of the right view, also x_left - x_right >= 0; empty when not at hand.
  cv::Mat right_disparity;
  // CV_8UC1: 255 where the data set says that the left pixel is seen by the right camera as well
  // (and knows it), 0 where it is occluded, out of the right view or unknown. Empty when the data
  // set says nothing about occlusion. Always read together with `disparity`: a 255 does not promise
  // a known disparity.
  cv::Mat noc_mask;
  // CV_32FC1, as `disparity`: the truth of visible pixels where the data set gives it in files of
  // its own, whose values may differ (KITTI's disp_noc). Only for evaluation; augment() drops it.
  cv::Mat noc_disparity;
  // CV_8UC1: 255 on reflecting surfaces with known truth (KITTI 2012); empty when not at hand.
  cv::Mat reflective_mask;
  // CV_32SC1: object ids of the left view. KITTI's obj_map: 0 = background, > 0 = a vehicle.
  // SceneFlow's object_index: an id per object. Empty when not at hand.
  cv::Mat objects;
  cv::Mat right_objects;  // the same of the right view
  // `objects` has an id for every surface (not only for vehicles): it may stand in for superpixels.
  bool objects_everywhere = false;
  // CV_8UC1: classes of the left view's surfaces (data/surfaces.h). Only for evaluation; augment()
  // drops it.
  cv::Mat surfaces;
  // CV_32SC1: what splits the cells of the left and of the right view into modals, see
  // data/modals.h. Only between add_segments() and add_modals().
  cv::Mat segments, right_segments;
  // CV_32FC4, ceil(H/8) x ceil(W/8), px, NaN = null: the modals of every cell, see data/modals.h.
  // The one map of another size; empty until add_modals().
  cv::Mat modals;
  std::string name;     // unique in its data set, without extension; may hold slashes
  bool sparse = false;  // truth with holes: scaled and jittered by the sparse rules
};

// How the file of truth becomes disparity.
enum class TruthKind {
  kDisparity,  // any file of read_disparity(): pfm, npy, tiff, integer png with a divisor
  kSintel,     // 8-bit colour png, d = 4 R + G / 64 + B / 16384
  kDepth,      // depth in any unit: d = depth_numerator / value
};

struct TruthCoding {
  TruthKind kind = TruthKind::kDisparity;
  double divisor = 256;        // kDisparity, integer files: d = value / divisor, 0 = unknown
  double depth_numerator = 0;  // kDepth: focal length * baseline * (stored units per length)
  double unknown_from = 0;     // kDepth: values from here on mean "too far"; 0 = no such value
  bool either_sign = false;    // a file that holds no positive number is negated
  double max_disparity = 0;    // a disparity from here on is unknown; 0 = no limit
};

// What the files of `SampleRef::noc` mean.
enum class NocCoding {
  kMask255,      // 255 = visible in both views (Middlebury, ETH3D)
  kKnown,        // a disparity file: known there = visible in both views (KITTI's disp_noc)
  kZeroVisible,  // 0 = visible; all files must say so (Sintel's occlusions and outofframe)
  kSameAsTruth,  // no file: the truth itself is known only where both views see the pixel
};

// Where one sample lies. Empty paths: not at hand.
struct SampleRef {
  std::string name;
  std::filesystem::path left, right;
  std::filesystem::path disparity, right_disparity;
  TruthCoding coding;
  std::vector<std::filesystem::path> noc;
  NocCoding noc_coding = NocCoding::kMask255;
  std::filesystem::path valid_mask;  // 0 = the truth is not to be used here
  std::filesystem::path reflective;  // a disparity file: known there = reflecting surface
  std::filesystem::path objects, right_objects;  // ids: integer png or pfm
  std::filesystem::path surfaces;                // classes of data/surfaces.h: png
  bool objects_everywhere = false;               // see Sample
  std::filesystem::path
      calibration;  // where the data set gives one per pair; not read by load_sample
  bool sparse = false;
};

// Reads everything `ref` names. Throws Error(kInput) naming the file when one is missing, broken,
// or of another size than the left image.
Sample load_sample(const SampleRef& ref);

}  // namespace nmrf
