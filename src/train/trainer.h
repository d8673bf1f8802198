// Training: stages, checkpoints, validation, logs. One process or many.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "train/config.h"
#include "train/distributed.h"

namespace nmrf::train {

struct TrainRun {
  std::filesystem::path folder;  // checkpoints, logs, models
  bool resume = false;           // go on from the newest checkpoint there; without one, start
  std::string device = "cpu";
  double max_minutes = 0;                            // save and stop after this time; 0 = no limit
  std::function<bool()> stop;                        // asked after every update: save and stop
  std::function<void(const std::string&)> progress;  // a line now and then
};

struct TrainResult {
  std::int64_t step = 0;       // updates done, over all stages
  bool finished = false;       // all stages are done
  std::optional<double> loss;  // of the last update that was made; nothing when none was
  std::int64_t skipped = 0;
  double samples_per_second = 0;
  double wait_share = 0;  // of the time, waiting for data
};

// Runs the configured training. The folder then holds
//   config.toml          the effective settings
//   step-*.safetensors   checkpoints, the newest `train.keep`
//   last.safetensors     the model (the average where there is one), for nmrf match
//   best.safetensors     the one with the lowest validation EPE
//   log.jsonl, events.*  logs
// Throws Error; on a lost peer Error(kFailure).
TrainResult run_training(const TrainConfig& config, const TrainRun& run,
                         std::shared_ptr<ProcessGroup> group);

}  // namespace nmrf::train
