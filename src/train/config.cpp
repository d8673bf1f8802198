#include "train/config.h"

#include "io/toml.h"

namespace nmrf::train {

void TrainConfig::validate() const {
  auto require = [](bool ok, const std::string& key, const std::string& rule) {
    check(ok, ErrorKind::kUsage, "setting {}: expected {}", key, rule);
  };
  model.validate();
  augment.validate();
  require(total_steps() > 0, "stage1.steps", "at least one stage with steps");
  require(!sources[0].name.empty(), "data1.name", "a data set, e.g. sceneflow, list or synth");
  require(workers >= 0 && workers <= 256, "data.workers", "0 to 256");
  require(weight_decay >= 0, "train.weight_decay", "0 or more");
  require(swin_lr > 0 && swin_lr <= 1, "train.swin_lr", "more than 0, at most 1");
  require(clip >= 0, "train.clip", "0 or more");
  require(ema >= 0 && ema < 1, "train.ema", "0 (off) to below 1");
  require(guide >= 0 && guide <= 1, "train.guide", "a share, 0 to 1");
  require(log_every > 0, "train.log_every", "1 or more");
  require(checkpoint_every > 0, "train.checkpoint_every", "1 or more");
  require(keep > 0, "train.keep", "1 or more");
  require(validate_every > 0, "train.validate_every", "1 or more");
  require(picture_every > 0, "train.picture_every", "1 or more");
  require(bad_steps > 0, "train.bad_steps", "1 or more");
  require(explode > 1, "train.explode", "more than 1");
  require(timeout >= 1, "train.timeout", "1 or more");
  for (int i = 0; i < kSources; ++i)
    require(repeat[i] >= 1 && repeat[i] <= 10000, "data" + std::to_string(i + 1) + ".repeat",
            "1 to 10000");
  for (int i = 0; i < kStages; ++i) {
    const StageOptions& s = stages[i];
    const std::string stage = "stage" + std::to_string(i + 1);
    require(s.steps >= 0, stage + ".steps", "0 or more");
    if (s.steps == 0) continue;
    require(s.lr > 0, stage + ".lr", "a positive number");
    require(s.batch >= 1, stage + ".batch", "1 or more");
    require(s.accumulate >= 1 && s.batch % s.accumulate == 0, stage + ".accumulate",
            "a divisor of the batch");
    const int alignment = model.alignment();
    const std::string rule = fmt::format("a multiple of {}, at least 32", alignment);
    require(s.crop_height >= 32 && s.crop_height % alignment == 0, stage + ".crop_height", rule);
    require(s.crop_width >= 32 && s.crop_width % alignment == 0, stage + ".crop_width", rule);
  }
}

std::int64_t TrainConfig::total_steps() const {
  std::int64_t sum = 0;
  for (const auto& stage : stages) sum += stage.steps;
  return sum;
}

TrainConfig read_config(const std::string& path, const std::vector<std::string>& assignments) {
  TrainConfig config;
  nlohmann::json object = path.empty() ? nlohmann::json::object() : read_toml(path);
  const nlohmann::json::json_pointer preset("/model/preset");
  std::string name = config.preset;
  if (object.contains(preset) && object[preset].is_string()) name = object[preset];
  for (const auto& assignment : assignments)
    if (assignment.rfind("model.preset=", 0) == 0) name = assignment.substr(13);
  config.model = preset_options(name);
  from_json_object(config, object, path);
  for (const auto& assignment : assignments) set_field(config, assignment);
  config.validate();
  return config;
}

}  // namespace nmrf::train
