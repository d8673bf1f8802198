// All settings of a training run, as in its TOML file.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "core/fields.h"
#include "data/augment.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "synth/options.h"
#include "train/losses.h"
#include "train/model/nmrf.h"
#include "train/teacher.h"

namespace nmrf::train {

// One part of a run with settings of its own. A stage of 0 steps does not exist.
struct StageOptions {
  std::int64_t steps = 0;
  Scope scope = Scope::kAll;
  double lr = 5e-4;    // maximum of the one-cycle schedule
  int batch = 8;       // samples an update, over all processes
  int accumulate = 1;  // the batch is worked off in this many parts
  int crop_height = 384;
  int crop_width = 768;
  std::vector<std::string> freeze;  // parameter name prefixes, e.g. "backbone"

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& visit) {
    visit("steps", self.steps, "updates; 0 = no such stage");
    visit("scope", self.scope, "what is trained: seeds, proposals or all");
    visit("lr", self.lr, "maximum learning rate");
    visit("batch", self.batch, "samples per update, over all processes");
    visit("accumulate", self.accumulate, "parts per batch (gradient accumulation)");
    visit("crop_height", self.crop_height, "pixels; a multiple of 8 (of 32 with Swin-T)");
    visit("crop_width", self.crop_width, "pixels; a multiple of 8 (of 32 with Swin-T)");
    visit("freeze", self.freeze, "prefixes of parameter names to freeze");
  }
};

struct TrainConfig {
  static constexpr int kStages = 4, kSources = 4;

  std::string preset = "paper";
  ModelOptions model;
  std::string init;                              // weights to start from
  std::array<DatasetOptions, kSources> sources;  // an empty name: none
  std::array<int, kSources> repeat{1, 1, 1, 1};
  SynthOptions synth;  // of a source called "synth"
  std::string cache;   // folder of superpixels; empty = beside the run
  AugmentOptions augment;
  int workers = 2;
  BrokenPolicy broken = BrokenPolicy::kSkip;
  LossOptions loss;
  TeacherOptions teacher;
  std::int64_t seed = 1;
  double weight_decay = 1e-5;
  double swin_lr = 1;
  double clip = 1;
  double ema = 0;
  double guide = 0.75;  // only where the model has match.guide
  std::array<StageOptions, kStages> stages;
  int log_every = 20;
  int checkpoint_every = 1000;
  int keep = 3;
  int validate_every = 5000;
  int picture_every = 1000;
  int bad_steps = 20;    // consecutive skipped updates that end a run
  double explode = 100;  // a loss this many times the recent ones is skipped
  DatasetOptions validation;
  int validation_pairs = 0;  // 0 = all
  double timeout = 60;       // seconds without a sign of a peer process

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& visit) {
    visit("model.preset", self.preset, "sizes to start from: paper, swin, fast or base");
    visit("model.init", self.init, "weights to start from (.safetensors or .pth)");
    below("model.", self.model, visit);
    for (int i = 0; i < kSources; ++i) {
      const std::string prefix = "data" + std::to_string(i + 1) + ".";
      below(prefix, self.sources[i], visit);
      visit((prefix + "repeat").c_str(), self.repeat[i], "repetitions per epoch");
    }
    visit("data.workers", self.workers, "loader threads");
    visit("data.broken", self.broken, "what to do with an unreadable sample: skip or fatal");
    visit("data.cache", self.cache, "cache folder of superpixels; empty = in the run folder");
    below("synth.", self.synth, visit);
    below("augment.", self.augment, visit);
    below("loss.", self.loss, visit);
    below("teacher.", self.teacher, visit);
    visit("train.seed", self.seed, "random seed of weights, order and augmentation");
    visit("train.weight_decay", self.weight_decay, "AdamW; never on position tables");
    visit("train.swin_lr", self.swin_lr,
          "learning rate of Swin-T and the sampling offsets, relative to the rest");
    visit("train.clip", self.clip, "largest gradient norm; 0 = off");
    visit("train.ema", self.ema, "decay of the weight average, e.g. 0.999; 0 = off");
    visit("train.guide", self.guide, "share of updates with a guide, for models with match.guide");
    visit("train.log_every", self.log_every, "updates per log line");
    visit("train.checkpoint_every", self.checkpoint_every, "updates per checkpoint");
    visit("train.keep", self.keep, "checkpoints kept, besides the best");
    visit("train.validate_every", self.validate_every, "updates per validation");
    visit("train.picture_every", self.picture_every, "updates per picture in the event file");
    visit("train.bad_steps", self.bad_steps, "skipped updates in a row that end the run");
    visit("train.explode", self.explode,
          "skip updates whose loss is this many times the recent ones");
    visit("train.timeout", self.timeout, "seconds to wait for a lost peer process");
    for (int i = 0; i < kStages; ++i)
      below("stage" + std::to_string(i + 1) + ".", self.stages[i], visit);
    below("validation.", self.validation, visit);
    visit("validation.pairs", self.validation_pairs, "maximum number of pairs; 0 = all");
  }

  // Throws Error(kUsage) naming the setting.
  void validate() const;
  std::int64_t total_steps() const;

 private:
  // The fields of a part under a prefix.
  template <class Part, class Visitor>
  static void below(const std::string& prefix, Part& part, Visitor&& visit) {
    std::remove_const_t<Part>::fields(part, [&](const char* key, auto& value, const char* doc) {
      visit((prefix + key).c_str(), value, doc);
    });
  }
};

// Reads a TOML file (empty: the defaults), then applies `assignments` ("stage1.lr=1e-4"). The
// preset is applied before the model's own settings, wherever it stands.
TrainConfig read_config(const std::string& path, const std::vector<std::string>& assignments);

}  // namespace nmrf::train
