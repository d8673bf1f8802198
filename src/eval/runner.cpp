#include "eval/runner.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <opencv2/imgproc.hpp>

#include "core/check.h"
#include "core/file.h"
#include "core/log.h"
#include "data/mats.h"
#include "viz/colormap.h"
#include "viz/error_map.h"

namespace nmrf {
namespace fs = std::filesystem;

namespace {

// The number in an environment variable, or `otherwise` when it is not set.
int number_in(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  if (!text || !*text) return otherwise;
  int value = 0;
  const std::string_view view(text);
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  check(error == std::errc() && end == view.data() + view.size(), ErrorKind::kUsage,
        "the environment variable {} is '{}'; expected a whole number", variable, text);
  return value;
}

// ndisp of a Middlebury calib.txt, 0 when it says none.
double ndisp_of(const fs::path& calibration) {
  std::error_code ignored;
  if (calibration.empty() || !fs::exists(calibration, ignored)) return 0;
  const std::string text = read_file(calibration, ErrorKind::kInput, 1 << 20);
  const auto at = text.find("ndisp=");
  if (at == std::string::npos) return 0;
  const double value = std::strtod(text.c_str() + at + 6, nullptr);
  return std::isfinite(value) && value > 0 ? value : 0;
}

cv::Mat at_most(const cv::Mat& picture, int width, int interpolation) {
  if (picture.cols <= width) return picture;
  const int height = std::max(
      1, static_cast<int>(std::lround(static_cast<double>(picture.rows) * width / picture.cols)));
  cv::Mat smaller;
  cv::resize(picture, smaller, {width, height}, 0, 0, interpolation);
  return smaller;
}

cv::Mat coloured(const cv::Mat& disparity, const ColorRange& range) {
  return bgr_of(colorize(float_map(disparity), Colormap::kTurbo, range));
}

// An error map that survives shrinking: points of sparse truth grow to a pixel of the small
// picture.
cv::Mat small_error_map(const cv::Mat& predicted, const Sample& sample, int width) {
  ByteMap occluded;
  if (!sample.noc_mask.empty()) occluded = byte_map(sample.noc_mask != 255);
  const Image map = error_map(float_map(predicted), float_map(sample.disparity), occluded,
                              {.dilate = sample.sparse});
  return at_most(bgr_of(map), width, cv::INTER_NEAREST);
}

class Pictures {
 public:
  Pictures(const RunOptions& options, const std::string& set) : options_(options) {
    if (!wanted()) return;
    views_ = options.folder / file_name_for(set) / "views";
    make_folder(views_);
  }
  bool wanted() const { return options_.pictures && !options_.folder.empty(); }

  void write(const ResultStore& store, const Sample& sample, const Prediction& prediction) const {
    if (!wanted()) return;
    const int width = options_.picture_width;
    // One range for truth and all methods, so that they can be compared by eye.
    const ColorRange range = robust_range(float_map(sample.disparity));
    const fs::path left = view(sample.name, "left"), truth = view(sample.name, "truth");
    std::error_code ignored;
    if (!fs::exists(left, ignored)) write_mat(left, at_most(sample.left, width, cv::INTER_AREA));
    if (!fs::exists(truth, ignored))
      write_mat(truth, at_most(shown_truth(sample, range), width, cv::INTER_NEAREST));
    write_mat(store.picture(sample.name, "disparity.jpg"),
              at_most(coloured(prediction.disparity, range), width, cv::INTER_AREA));
    write_mat(store.picture(sample.name, "error.png"),
              small_error_map(prediction.disparity, sample, width));
    if (!prediction.labels.empty())
      write_mat(store.picture(sample.name, "best.png"),
                small_error_map(best_labels(prediction.labels, sample.disparity), sample, width));
  }

  // Names the pictures that exist; false when the common ones are missing.
  bool find(const ResultStore& store, ImageResult& result) const {
    if (!wanted()) return true;
    const std::pair<const char*, fs::path> files[] = {
        {"left", view(result.name, "left")},
        {"truth", view(result.name, "truth")},
        {"disparity", store.picture(result.name, "disparity.jpg")},
        {"error", store.picture(result.name, "error.png")},
        {"best", store.picture(result.name, "best.png")}};
    std::error_code ignored;
    for (const auto& [kind, path] : files)
      if (fs::exists(path, ignored)) result.pictures[kind] = path;
    return result.pictures.contains("left") && result.pictures.contains("disparity") &&
           result.pictures.contains("error");
  }

 private:
  // A picture that all methods share.
  fs::path view(const std::string& name, const char* kind) const {
    return views_ / (file_name_for(name) + "." + kind + ".jpg");
  }
  // Points of sparse truth are enlarged, or shrinking would lose them.
  static cv::Mat shown_truth(const Sample& sample, const ColorRange& range) {
    cv::Mat colors = coloured(sample.disparity, range);
    if (sample.sparse) cv::dilate(colors, colors, cv::Mat());
    return colors;
  }
  const RunOptions& options_;
  fs::path views_;
};

ImageResult run_one(const Method& method, const Sample& sample, const cv::Mat& modals,
                    const MetricOptions& metrics, const ResultStore& store,
                    const Pictures& pictures) {
  Prediction prediction = method.predict(sample.left, sample.right);
  ImageResult result;
  result.name = sample.name;
  result.width = sample.left.cols;
  result.height = sample.left.rows;
  result.seconds = prediction.seconds;
  result.regions = measure(prediction.disparity, sample, metrics);
  if (!modals.empty() && !prediction.labels.empty())
    result.proposals =
        measure_proposals(prediction.labels, prediction.seeds, modals, metrics.max_disparity);
  if (!prediction.confidence.empty()) {
    result.winners.emplace();
    result.winners->add(prediction.confidence);
  }
  pictures.write(store, sample, prediction);
  store.put(result);
  return result;
}

// A pair that fails is listed and the run goes on; a wrong model or setting ends it.
bool concerns_one_pair(const Error& error) {
  return error.kind() == ErrorKind::kInput || error.kind() == ErrorKind::kFailure ||
         error.kind() == ErrorKind::kDevice;
}

ImageResult failure(const std::string& name, const std::string& reason) {
  ImageResult result;
  result.name = name;
  result.error = reason;
  return result;
}

}  // namespace

Shard Shard::from_environment() {
  Shard shard;
  shard.world = number_in("WORLD_SIZE", 1);
  shard.rank = number_in("RANK", 0);
  check(shard.world >= 1, ErrorKind::kUsage, "WORLD_SIZE is {}; expected at least 1", shard.world);
  check(shard.rank >= 0 && shard.rank < shard.world, ErrorKind::kUsage,
        "RANK is {} with WORLD_SIZE {}; expected 0 to {}", shard.rank, shard.world,
        shard.world - 1);
  return shard;
}

bool SetResults::complete() const {
  for (const auto& method : methods)
    if (method.missing > 0) return false;
  return true;
}

std::size_t SetResults::failures() const {
  std::size_t count = 0;
  for (const auto& method : methods) count += method.failed.size();
  return count;
}

std::size_t SetResults::without_truth() const {
  if (methods.empty()) return 0;
  return static_cast<std::size_t>(
      std::count_if(methods[0].images.begin(), methods[0].images.end(), [](const auto& image) {
        const auto all = image.regions.find("all");
        return all == image.regions.end() || all->second.pixels == 0;
      }));
}

SetResults evaluate(const EvalSet& set, const std::vector<const Method*>& methods,
                    const RunOptions& options) {
  check(options.shard.world == 1 || !options.folder.empty(), ErrorKind::kUsage,
        "a run shared by {} processes needs a folder to put the results together (--output)",
        options.shard.world);
  set.protocol.metrics.validate();
  const Dataset& data = *set.dataset;
  const std::size_t begin = std::min(options.first, data.size());
  const std::size_t end = begin + std::min(options.count, data.size() - begin);

  const std::string about = to_json_object(set.options).dump() +
                            to_json_object(set.protocol.metrics).dump() +
                            (set.protocol.clip_to_ndisp ? "clip" : "") +
                            (options.modals ? "modals" : "") + "noc truth of its own";
  std::vector<ResultStore> stores;
  for (const Method* method : methods)
    stores.emplace_back(options.folder, set.label, method->name(), method->identity() + about);
  const Pictures pictures(options, set.label);

  SetResults results;
  results.set = set;
  results.images = end - begin;
  results.methods.resize(methods.size());
  for (std::size_t m = 0; m < methods.size(); ++m) results.methods[m].method = methods[m]->name();

  bool stopped = false;
  for (std::size_t i = begin; i < end; ++i) {
    const SampleRef& ref = data.ref(i);
    results.visible_only += ref.noc_coding == NocCoding::kSameAsTruth;
    const bool mine = i % static_cast<std::size_t>(options.shard.world) ==
                      static_cast<std::size_t>(options.shard.rank);
    if (!mine) continue;
    std::optional<Sample> sample;  // read only when something is left to do
    cv::Mat modals;
    std::string unreadable;
    for (std::size_t m = 0; m < methods.size() && !stopped; ++m) {
      if (auto found = stores[m].find(ref.name);
          found && found->error.empty() && pictures.find(stores[m], *found))
        continue;
      if (options.stop && options.stop()) {
        stopped = true;
        break;
      }
      if (options.progress) options.progress(set.label, methods[m]->name(), i - begin, end - begin);
      ImageResult result;
      try {
        if (!unreadable.empty()) fail(ErrorKind::kInput, "{}", unreadable);
        if (!sample) {
          try {
            sample = load_sample(ref);
            if (options.modals) modals = options.modals(*sample);
          } catch (const Error& error) {
            if (concerns_one_pair(error)) unreadable = error.what();
            throw;
          }
        }
        MetricOptions metrics = set.protocol.metrics;
        if (set.protocol.clip_to_ndisp && metrics.clip == 0)
          metrics.clip = ndisp_of(ref.calibration);
        result = run_one(*methods[m], *sample, modals, metrics, stores[m], pictures);
      } catch (const Error& error) {
        if (!concerns_one_pair(error)) throw;
        result = failure(ref.name, error.what());
        log_warning("{}, {}: {}", set.label, ref.name, error.what());
        stores[m].put(result);
      }
      if (!stores[m].keeps())
        (result.error.empty() ? results.methods[m].images : results.methods[m].failed)
            .push_back(std::move(result));
    }
    if (stopped) break;
  }

  for (std::size_t m = 0; m < methods.size(); ++m) {
    MethodResults& method = results.methods[m];
    for (std::size_t i = begin; i < end && stores[m].keeps(); ++i) {
      auto found = stores[m].find(data.ref(i).name);
      if (!found) continue;
      pictures.find(stores[m], *found);
      (found->error.empty() ? method.images : method.failed).push_back(std::move(*found));
    }
    method.missing = results.images - method.images.size() - method.failed.size();
    for (const ImageResult& image : method.images)
      method.weights.push_back(scene_weight(set.options.name, image.name));
  }
  return results;
}

}  // namespace nmrf
