#include "train/trainer.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <opencv2/core/utility.hpp>
#include <optional>

#include "core/check.h"
#include "core/file.h"
#include "core/folder_lock.h"
#include "core/log.h"
#include "core/rng.h"
#include "io/toml.h"
#include "plot/run_log.h"
#include "train/batch.h"
#include "train/checkpoint.h"
#include "train/events.h"
#include "train/model/weights.h"
#include "train/optimizer.h"
#include "train/sources.h"
#include "train/teacher.h"
#include "train/validation.h"

namespace nmrf::train {
namespace {

using Clock = std::chrono::steady_clock;

// A run that ends with this many skipped updates in a row has failed; so has one that made none.
constexpr int kLastUpdates = 10;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Mean of the values added since the last take().
class Averages {
 public:
  void add(const std::string& name, double value) {
    auto& [sum, count] = sums_[name];
    sum += value;
    ++count;
  }
  nlohmann::json take() {
    nlohmann::json means = nlohmann::json::object();
    for (const auto& [name, entry] : sums_) means[name] = entry.first / entry.second;
    sums_.clear();
    return means;
  }

 private:
  std::map<std::string, std::pair<double, int>> sums_;
};

class Trainer {
 public:
  Trainer(const TrainConfig& config, const TrainRun& run, std::shared_ptr<ProcessGroup> group)
      : config_(config),
        run_(run),
        group_(std::move(group)),
        device_(run.device),
        network_(make_network(config.model, static_cast<uint64_t>(config.seed))),
        average_(network_, 0) {}

  TrainResult go() {
    std::optional<Checkpoint> start;
    if (run_.resume) {
      if (auto found = newest_sound_checkpoint(run_.folder, chief()))
        start = load(found->path, std::move(found->checkpoint));
      else if (chief())
        log_info("{}: holds no checkpoint yet; starting from the beginning", run_.folder.string());
    }
    const std::int64_t first = step_;
    if (!start) initial_weights();
    network_->to(device_);
    for (auto& item : network_->named_parameters()) {
      torch::NoGradGuard no_grad;
      auto value = item.value().detach();
      group_->broadcast(value);
    }
    average_ = WeightAverage(network_, config_.ema);
    if (start) average_.load_state(start->tensors);
    if (chief()) open_logs();
    validation_ = make_validation(config_);
    if (!config_.teacher.model.empty()) teacher_.emplace(config_.teacher, config_.model, device_);

    begin_ = Clock::now();
    std::int64_t before = 0;
    for (int i = 0; i < TrainConfig::kStages && !stopping_; ++i) {
      const StageOptions& stage = config_.stages[i];
      if (stage.steps == 0 || step_ >= before + stage.steps) {
        before += stage.steps;
        continue;
      }
      run_stage(i, before, start && start_stage_ == i ? &*start : nullptr);
      start.reset();
      before += stage.steps;
    }
    // Fewer than train.bad_steps may be left when the run ends.
    const bool finished = step_ == config_.total_steps();
    const bool nothing_made = step_ > first && !last_loss_;
    check(
        !finished || !(nothing_made || skipped_last_ >= kLastUpdates), ErrorKind::kFailure,
        "{}: the last {} updates were all skipped, so nothing was learnt from them, and no model "
        "was written. Go on from a checkpoint before them with a lower learning rate (stageN.lr), "
        "and look for broken truth in the data.",
        run_.folder.string(), skipped_last_);
    if (chief()) {
      save_model_file("last.safetensors");
      if (events_) events_->flush();
    }
    TrainResult result;
    result.step = step_;
    result.finished = finished;
    result.loss = last_loss_;
    result.skipped = skipped_;
    const double elapsed = seconds_since(begin_);
    result.samples_per_second = elapsed > 0 ? static_cast<double>(samples_) / elapsed : 0;
    result.wait_share = elapsed > 0 ? waited_ / elapsed : 0;
    return result;
  }

 private:
  bool chief() const { return group_->rank() == 0; }

  void initial_weights() {
    if (config_.init.empty()) return;
    const LoadReport report =
        load_initial_weights(network_, read_tensor_file(config_.init), config_.init);
    if (chief()) log_info("{}: {}", config_.init, report.summary());
  }

  Checkpoint load(const std::filesystem::path& path, Checkpoint checkpoint) {
    torch::NoGradGuard no_grad;
    for (auto& item : network_->named_parameters()) {
      auto found = checkpoint.tensors.find("model." + item.key());
      check(found != checkpoint.tensors.end() && found->second.sizes() == item.value().sizes(),
            ErrorKind::kModel,
            "{}: does not fit the configured network at '{}'; resume with the settings of the run "
            "(its config.toml)",
            path.string(), item.key());
      item.value().copy_(found->second);
    }
    const auto& state = checkpoint.state;
    step_ = state.at("step");
    start_stage_ = state.at("stage");
    skipped_ = state.at("skipped");
    skipped_last_ = bad_in_a_row_ = state.at("bad_in_a_row");
    recent_loss_ = state.at("recent_loss");
    best_epe_ = state.at("best_epe").is_null() ? INFINITY : state.at("best_epe").get<double>();
    position_ = {state.at("epoch"), state.at("index")};
    if (chief()) log_info("going on from {} at update {}", path.string(), step_);
    return checkpoint;
  }

  void open_logs() {
    write_file(run_.folder / "config.toml", to_toml(to_json_object(config_)));
    log_.emplace(run_.folder, step_);
    events_.emplace(run_.folder, step_);
  }

  // `before`: updates of the earlier stages. `start`: the checkpoint, when it lies in this stage.
  void run_stage(int index, std::int64_t before, const Checkpoint* start) {
    const StageOptions& stage = config_.stages[index];
    const int world = group_->size();
    check(stage.batch % (stage.accumulate * world) == 0, ErrorKind::kUsage,
          "stage{}.batch is {}: {} processes and {} parts do not divide it", index + 1, stage.batch,
          world, stage.accumulate);
    AdamW optimizer(network_, {config_.weight_decay, stage.freeze, config_.swin_lr});
    if (start) optimizer.load_state(start->tensors);
    GradientAverager averager(group_, optimizer.parameters());
    OneCycle schedule{.max_lr = stage.lr, .total_steps = stage.steps + 100};

    LoaderOptions loading;
    loading.batch = stage.batch / world;
    loading.workers = config_.workers;
    loading.seed = config_.seed * 1000 + index;
    loading.broken = config_.broken;
    loading.rank = group_->rank();
    loading.world = world;
    Loader loader(make_source(config_, stage, run_.folder), loading,
                  start ? position_ : LoaderPosition{});
    if (chief())
      log_info("stage {}: {} updates of {} samples {}x{}, scope {}, lr {:g}, {} tensors trained",
               index + 1, stage.steps, stage.batch, stage.crop_width, stage.crop_height,
               enum_name(stage.scope), stage.lr, optimizer.parameters().size());

    if (!start) {  // another scope, another loss
      recent_loss_ = 0;
      bad_in_a_row_ = 0;
    }
    network_->train();
    Averages averages;
    auto window_start = Clock::now();
    std::int64_t window_samples = 0;
    double window_wait = 0;
    const std::int64_t end = before + stage.steps;
    while (step_ < end && !stopping_) {
      const auto wait_start = Clock::now();
      std::vector<Sample> samples = loader.next();
      window_wait += seconds_since(wait_start);
      const std::int64_t inner = step_ - before;
      update(stage, samples, optimizer, averager, schedule.at(inner), averages);
      ++step_;
      samples_ += stage.batch;
      window_samples += stage.batch;
      position_ = loader.position();

      const bool last = step_ == end;
      if (chief() && (step_ % config_.log_every == 0 || last)) {
        report(stage, schedule.at(inner), averages, window_samples, window_wait,
               seconds_since(window_start));
        waited_ += window_wait;
        window_start = Clock::now();
        window_samples = 0;
        window_wait = 0;
      }
      if (step_ % config_.validate_every == 0 || step_ == config_.total_steps()) validate(stage);
      stopping_ = agree_to_stop();
      if (step_ % config_.checkpoint_every == 0 || last || stopping_) save(index, optimizer);
    }
    // The checkpoint at the end of a stage belongs to the next one, which starts afresh.
  }

  // One update: forward and backward of all parts, averaging, clipping, the step.
  void update(const StageOptions& stage, const std::vector<Sample>& samples, AdamW& optimizer,
              GradientAverager& averager, double lr, Averages& averages) {
    optimizer.zero_grad();
    Batch batch = make_batch(samples, config_.loss.modals, device_);
    const std::int64_t part = batch.size() / stage.accumulate;
    double loss = 0;
    ForwardOptions how;
    how.scope = stage.scope;
    how.every_layer = true;
    how.keep_features = teacher_.has_value();
    const bool guided =
        stage.scope != Scope::kSeeds &&
        Rng(mix_seed({static_cast<std::uint64_t>(config_.seed), static_cast<std::uint64_t>(step_)}))
            .chance(config_.guide);
    for (int i = 0; i < stage.accumulate; ++i) {
      Batch piece = narrow(batch, i * part, part);
      how.seed =
          mix_seed({static_cast<std::uint64_t>(config_.seed), static_cast<std::uint64_t>(step_),
                    static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(group_->rank())});
      if (guided) how.guide = half_size_map(network_, piece.left, piece.right);
      NetworkOutput out = network_->forward(piece.left, piece.right, how);
      Losses losses = compute_losses(out, piece.truth, config_.loss, common_counts());
      if (teacher_) {
        Teacher::Lesson lesson = teacher_->teach(piece, out, config_.loss);
        if (lesson.total.defined()) losses.total = losses.total + lesson.total;
        losses.terms.insert(losses.terms.end(), lesson.terms.begin(), lesson.terms.end());
      }
      if (i + 1 == stage.accumulate) averager.arm();
      (losses.total / stage.accumulate).backward();
      loss += losses.total.item<double>() / stage.accumulate;
      for (const auto& [name, value] : losses.terms) averages.add(name, value.item<double>());
      if (losses.epe) averages.add("epe", *losses.epe);
      if (i == 0 && chief() && events_ && step_ % config_.picture_every == 0)
        log_picture(out, piece);
    }
    averager.finish();

    auto shared = torch::full({1}, loss, torch::kDouble);
    group_->sum_now(shared);
    loss = shared.item<double>() / group_->size();
    const double norm = optimizer.clip(config_.clip);
    const bool exploded = recent_loss_ > 0 && loss > config_.explode * recent_loss_;
    if (!std::isfinite(loss) || !std::isfinite(norm) || exploded) {
      ++skipped_;
      ++bad_in_a_row_;
      ++skipped_last_;
      if (chief())
        log_warning("update {}: loss {:g}, gradient norm {:g}: skipped ({} in all)", step_, loss,
                    norm, skipped_);
      check(
          bad_in_a_row_ < config_.bad_steps, ErrorKind::kFailure,
          "{} updates in a row had a loss or gradient that is not finite or has exploded. The last "
          "checkpoint is good: resume from it with a lower learning rate (stageN.lr), and look for "
          "broken truth in the data.",
          bad_in_a_row_);
      return;
    }
    bad_in_a_row_ = skipped_last_ = 0;
    recent_loss_ = recent_loss_ > 0 ? 0.98 * recent_loss_ + 0.02 * loss : loss;
    last_loss_ = loss;
    averages.add("loss", loss);
    averages.add("grad_norm", norm);
    optimizer.step(lr);
    average_.update(network_);
  }

  // Divisors common to all processes, so that their averaged gradients are those of the whole
  // batch.
  CountHook common_counts() {
    if (group_->size() == 1) return {};
    return [this](const LossCounts& mine) {
      auto counts = torch::tensor(
          {mine.init, mine.proposal, mine.disparity, mine.search_place, mine.search_choice},
          torch::kDouble);
      group_->sum_now(counts);
      counts.div_(group_->size());
      return LossCounts{counts[0].item<double>(), counts[1].item<double>(),
                        counts[2].item<double>(), counts[3].item<double>(),
                        counts[4].item<double>()};
    };
  }

  void report(const StageOptions& stage, double lr, Averages& averages, std::int64_t samples,
              double waited, double elapsed) {
    nlohmann::json means = averages.take();
    means["step"] = step_;
    means["lr"] = lr;
    means["samples_per_second"] = static_cast<double>(samples) / std::max(elapsed, 1e-9);
    means["data_wait"] = waited / std::max(elapsed, 1e-9);
    means["skipped"] = skipped_;
    log_->write(means);
    for (const auto& [name, value] : means.items())
      if (name != "step" && value.is_number())
        events_->scalar(step_, "train/" + name, value.get<double>());
    events_->flush();
    if (!run_.progress) return;
    const double rate = static_cast<double>(samples) / stage.batch / std::max(elapsed, 1e-9);
    const double left = static_cast<double>(config_.total_steps() - step_) / std::max(rate, 1e-9);
    std::string line = fmt::format("{}/{}", step_, config_.total_steps());
    for (const char* name : {"loss", "init", "proposal", "epe"})
      if (means.contains(name)) line += fmt::format("  {} {:.3f}", name, means[name].get<double>());
    line += fmt::format("  lr {:.2e}  {:.2f} samples/s  data wait {:.0f} %  {:.0f} min left", lr,
                        means["samples_per_second"].get<double>(),
                        100 * means["data_wait"].get<double>(), left / 60);
    run_.progress(line);
  }

  void log_picture(const NetworkOutput& out, const Batch& piece) {
    events_->picture(step_ + 1, "train/pair", training_picture(out, piece));
  }

  void validate(const StageOptions& stage) {
    if (!validation_ || stage.scope != Scope::kAll) return;
    average_.swap(network_);
    network_->eval();
    ValidationResult result = validation_->run(network_, *group_);
    network_->train();
    if (chief()) {
      nlohmann::json line = result.metrics;
      line["step"] = step_;
      line["validation"] = true;
      log_->write(line);
      for (const auto& [name, value] : result.metrics.items())
        if (value.is_number()) events_->scalar(step_, "validation/" + name, value.get<double>());
      if (run_.progress) run_.progress(fmt::format("validation at {}: {}", step_, result.line));
      if (result.epe < best_epe_) {
        best_epe_ = result.epe;
        write_model("best.safetensors");
      }
    }
    average_.swap(network_);
  }

  // The network's present weights as a model.
  void write_model(const std::string& name) {
    save_model(run_.folder / name, network_,
               {{"step", std::to_string(step_)},
                {"config", to_json_object(config_).dump()},
                {"seed", std::to_string(config_.seed)}});
  }

  void save_model_file(const std::string& name) {
    average_.swap(network_);
    write_model(name);
    average_.swap(network_);
  }

  void save(int stage, const AdamW& optimizer) {
    if (!chief()) return;
    Checkpoint checkpoint;
    checkpoint.tensors = optimizer.state();
    for (const auto& item : network_->named_parameters())
      checkpoint.tensors["model." + item.key()] = item.value();
    for (const auto& [name, value] : average_.state()) checkpoint.tensors[name] = value;
    checkpoint.state = {
        {"step", step_},
        {"stage", stage},
        {"epoch", position_.epoch},
        {"index", position_.index},
        {"skipped", skipped_},
        {"bad_in_a_row", bad_in_a_row_},
        {"recent_loss", recent_loss_},
        {"best_epe", std::isfinite(best_epe_) ? nlohmann::json(best_epe_) : nullptr},
        {"config", to_json_object(config_)}};
    const auto older = newest_checkpoint(run_.folder);
    try {
      write_checkpoint(checkpoint_path(run_.folder, step_), checkpoint);
    } catch (const Error& error) {
      fail(error.kind(), "{} {}", error.what(),
           older ? fmt::format("{} is intact: make room and go on from it with --resume.",
                               older->string())
                 : "There is no earlier checkpoint: make room and start again.");
    }
    prune_checkpoints(run_.folder, config_.keep);
  }

  // All processes stop when one of them is asked to.
  bool agree_to_stop() {
    const bool mine = (run_.stop && run_.stop()) ||
                      (run_.max_minutes > 0 && seconds_since(begin_) > 60 * run_.max_minutes);
    auto votes = torch::full({1}, mine ? 1.0 : 0.0, torch::kDouble);
    group_->sum_now(votes);
    return votes.item<double>() > 0;
  }

  TrainConfig config_;
  TrainRun run_;
  std::shared_ptr<ProcessGroup> group_;
  torch::Device device_;
  Network network_;
  WeightAverage average_;
  std::unique_ptr<Validation> validation_;
  std::optional<Teacher> teacher_;
  std::optional<JsonLog> log_;
  std::optional<EventFile> events_;

  std::int64_t step_ = 0;
  int start_stage_ = 0;
  LoaderPosition position_;
  std::int64_t skipped_ = 0;
  int bad_in_a_row_ = 0;  // in this stage
  int skipped_last_ = 0;  // since the last update that was made, whatever the stage
  double recent_loss_ = 0, best_epe_ = INFINITY;
  std::optional<double> last_loss_;
  bool stopping_ = false;
  Clock::time_point begin_;
  std::int64_t samples_ = 0;
  double waited_ = 0;
};

}  // namespace

TrainResult run_training(const TrainConfig& config, const TrainRun& run,
                         std::shared_ptr<ProcessGroup> group) {
  config.validate();
  // The loader has threads of its own.
  cv::setNumThreads(1);
  std::optional<FolderLock> lock;
  if (group->rank() == 0) {
    make_folder(run.folder);
    lock.emplace(run.folder, "nmrf train");
    check(run.resume || !newest_checkpoint(run.folder), ErrorKind::kUsage,
          "{}: holds checkpoints of an earlier run. Go on with --resume, or name another folder.",
          run.folder.string());
  }
  return Trainer(config, run, std::move(group)).go();
}

}  // namespace nmrf::train
