// All that a run needs to go on exactly where it stopped, in one file.
#pragma once

#include <torch/torch.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace nmrf::train {

struct Checkpoint {
  std::map<std::string, torch::Tensor> tensors;  // "model.*", "adam_*", "ema.*"
  nlohmann::json state;                          // step, position in the data, counters, config
};

// Writes safetensors, atomically: a killed process or a full disk leaves the previous file.
void write_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint);
// Throws Error(kModel).
Checkpoint read_checkpoint(const std::filesystem::path& path);

// `folder`/step-00001000.safetensors
std::filesystem::path checkpoint_path(const std::filesystem::path& folder, std::int64_t step);
// The newest checkpoint of a run, or nothing.
std::optional<std::filesystem::path> newest_checkpoint(const std::filesystem::path& folder);
// The newest checkpoint that can be read, or nothing when there is none at all. Damaged ones are
// passed over with a warning; with `set_aside` they are renamed to *.damaged. Throws Error(kModel)
// when every one is damaged.
struct FoundCheckpoint {
  std::filesystem::path path;
  Checkpoint checkpoint;
};
std::optional<FoundCheckpoint> newest_sound_checkpoint(const std::filesystem::path& folder,
                                                       bool set_aside);
// Deletes all but the `keep` newest, and temporaries that a killed process left.
void prune_checkpoints(const std::filesystem::path& folder, int keep);

}  // namespace nmrf::train
