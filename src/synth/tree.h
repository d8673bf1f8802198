// Writing rendered pairs as a folder tree that the reader of SceneFlow understands.
//
//   FOLDER/FlyingThings3D/frames_finalpass/TRAIN/A/0000/{left,right}/0006.png
//                         disparity/TRAIN/A/0000/{left,right}/0006.pfm
//                         object_index/TRAIN/A/0000/{left,right}/0006.pfm
//                         occlusion/TRAIN/A/0000/{left,right}/0006.png    255 = occluded
//                         optical_flow/TRAIN/A/0000/into_past/left/0007.flo   of sequences
//                         calib/TRAIN/A/0000/0006.txt                     Middlebury's form
//                         synth_TRAIN.toml                                the settings
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "synth/synth.h"

namespace nmrf {

struct SynthTree {
  std::filesystem::path folder;
  std::int64_t pairs = 0;
  // More than 1: `pairs` sequences of so many frames each, a folder per sequence.
  int frames = 1;
  std::string split = "TRAIN";  // or TEST
  int threads = 0;              // 0 = one for each processor
  // Called after each pair, by one thread at a time, with the number of pairs that are there.
  std::function<void(std::int64_t done, std::int64_t total)> progress;
  // Asked before each pair; true ends the run early.
  std::function<bool()> stop;
};

struct SynthTreeResult {
  std::int64_t written = 0;
  std::int64_t skipped = 0;  // were complete already
};

// Where pair `index` of a split lies: "TRAIN/A/0000", "0006".
struct SynthPlace {
  std::filesystem::path sequence;
  std::string frame;
};
SynthPlace synth_place(const std::string& split, std::int64_t index);

// The same of a frame of a sequence.
SynthPlace sequence_place(const std::string& split, std::int64_t sequence, int frame);

// Renders the pairs 0 .. pairs - 1. Complete pairs are left alone, so that a run that was stopped
// can be taken up again and a finished one extended; every file appears whole or not at all. Throws
// Error(kUsage) when the folder was begun with other settings.
SynthTreeResult write_synth_tree(const SynthOptions& options, const SynthTree& tree);

}  // namespace nmrf
