// The inputs of matching: pairs of pictures from files, folders, patterns, lists and videos.
//
//   auto source = open_pairs({.left = "left/", .right = "right/"});
//   InputPair pair;
//   while (source->next(pair)) {
//     if (pair.error) { ...report it and go on... }
//   }
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/shard.h"
#include "nmrf/error.h"
#include "nmrf/image.h"

namespace nmrf {

// How pictures or frames hold the two views.
enum class Layout {
  kByName,      // each its own; of a single .mpo file kMpo, of .jps and .pns files kCrossed
  kSideBySide,  // left and right half
  kCrossed,     // the right view in the left half
  kTopBottom,   // the left view above
  kBottomTop,   // the right view above
  kMpo,         // two JPEG pictures one after the other, as stereo cameras write them
};

// What to read.
struct PairInput {
  // A picture, a folder, a pattern with * ? [ ], or a video. With a layout of both views in one
  // picture, `left` alone.
  std::string left{}, right{};
  Layout layout = Layout::kByName;
  // Turn pictures as their EXIF orientation says. Without, they are taken as stored.
  bool upright = false;
  // Instead of `left`: a camera whose frames hold both views, side by side unless `layout` says
  // otherwise. Its number, or its address in a network.
  std::optional<std::string> camera{};
  // Instead of the two: a list file with `left right` in each line, relative to the list's folder
  // or to `root`; further columns are ignored.
  std::string list{};
  std::string root{};
  // Of the pairs, those that belong to this process. A video cannot be shared.
  Shard shard{};
};

struct InputPair {
  Image left, right;  // 8-bit RGB, the same size; empty when `error` is set
  // For naming outputs: unique in the source, no slashes, no extension.
  std::string stem;
  std::string left_name, right_name;  // paths, for messages
  std::int64_t index = 0;             // from 0
  // What the camera noted, as a first guess: focal length in px of the images, and metres.
  std::optional<double> focal_guess, baseline_guess;
  std::optional<Error> error;  // this pair cannot be used: unreadable, or sizes differ
};

class PairSource {
 public:
  virtual ~PairSource() = default;
  // Reads the following pair; false at the end. A bad pair is handed out with `error` set and does
  // not end the iteration.
  virtual bool next(InputPair& pair) = 0;
  // The number of pairs where it is known (a video may not know, or be wrong).
  virtual std::optional<std::int64_t> total() const = 0;
  // Frames per second of a video; nothing for pictures.
  virtual std::optional<double> frame_rate() const { return std::nullopt; }
};

// Throws Error(kUsage) for a contradictory input, Error(kInput) when there is nothing to read, and
// when the two sides do not fit: folders and patterns are matched in sorted order, and the first
// name without a partner is named. Names fit when they are equal, or equal but for the words
// left/right or single letters l/r; of patterns, only what the wildcards stand for is compared.
std::unique_ptr<PairSource> open_pairs(const PairInput& input);

// The name without what tells left from right, in lower case: "IMG_L_01" -> "img_*_01".
std::string name_without_side(const std::string& name);

}  // namespace nmrf
