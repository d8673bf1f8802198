// Runs methods over data sets: image by image, resumable, shared among processes.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "eval/method.h"
#include "eval/protocol.h"
#include "eval/results.h"

namespace nmrf {

// This process among those that share a run, from the environment variables RANK and WORLD_SIZE
// (the ones of distributed training). Image i belongs to rank i mod world.
struct Shard {
  int rank = 0;
  int world = 1;
  // Throws Error(kUsage) for values that are no numbers or contradict each other.
  static Shard from_environment();
};

struct RunOptions {
  std::filesystem::path folder;  // where results are kept; empty: nowhere
  Shard shard;
  // The superpixel modals of a sample (data/modals.h: CV_32FC4, px): with it, the recall of labels
  // and seeds is measured too.
  std::function<cv::Mat(const Sample&)> modals;
  bool pictures = false;    // also small pictures of each image, for the report; needs `folder`
  int picture_width = 480;  // px, at most
  std::size_t first = 0;    // of the data set's images, only these
  std::size_t count = SIZE_MAX;
  std::function<bool()> stop;  // asked before each image; true ends the run
  // Called before an image is run: set, method, index from 0, number of images.
  std::function<void(const std::string&, const std::string&, std::size_t, std::size_t)> progress;
};

// The results of one method on one data set, in the data set's order.
struct MethodResults {
  std::string method;
  std::vector<ImageResult> images;  // finished
  std::vector<ImageResult> failed;  // with their errors
  std::size_t missing = 0;          // not there yet: other processes', or the run was stopped
  std::vector<double> weights;      // of `images`, by the benchmark
};

struct SetResults {
  EvalSet set;
  std::vector<MethodResults> methods;
  std::size_t visible_only = 0;  // images whose truth has visible pixels only: their all is noc
  std::size_t images = 0;        // asked for
  bool complete() const;         // nothing is missing
  std::size_t failures() const;
  std::size_t without_truth() const;  // finished images that had no pixel to compare
};

// Evaluates all methods on this process's share, then collects what other processes have stored.
// A pair that cannot be read or matched becomes a failed result; other errors are thrown.
SetResults evaluate(const EvalSet& set, const std::vector<const Method*>& methods,
                    const RunOptions& options);

}  // namespace nmrf
