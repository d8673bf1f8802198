#include "train/validation.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <opencv2/imgproc.hpp>

#include "core/check.h"
#include "eval/metrics.h"
#include "matching/engine.h"
#include "nmrf/opencv.h"
#include "viz/colormap.h"

namespace nmrf::train {
namespace {

constexpr std::array<const char*, 4> kReported{"epe", "bad1", "bad3", "d1"};

cv::Mat to_mat(const torch::Tensor& map) {
  auto values = map.detach().to(torch::kCPU).to(torch::kFloat).contiguous();
  return cv::Mat(static_cast<int>(values.size(0)), static_cast<int>(values.size(1)), CV_32FC1,
                 values.data_ptr())
      .clone();
}

// The parameters of the modules.
class ModuleParameters : public Parameters {
 public:
  explicit ModuleParameters(const Network& network) : parameters_(network->named_parameters()) {}
  std::vector<float> take(const std::string& name, std::vector<std::int64_t>) override {
    const auto values = parameters_[name].detach().to(torch::kCPU).to(torch::kFloat).contiguous();
    return {values.data_ptr<float>(), values.data_ptr<float>() + values.numel()};
  }

 private:
  torch::OrderedDict<std::string, torch::Tensor> parameters_;
};

// The runtime with the present weights: what users get.
Matcher runtime_of(const Network& network) {
  ModuleParameters parameters(network);
  nmrf::LoadedModel model;
  model.network = std::make_shared<nmrf::Network>(parameters, network->options());
  MatcherOptions options;
  options.threads = at::get_num_threads();
  return make_matcher(std::move(model), options);
}

}  // namespace

Validation::Validation(std::shared_ptr<const Dataset> dataset, int pairs, double max_disp)
    : dataset_(std::move(dataset)),
      pairs_(pairs > 0 ? std::min<std::size_t>(dataset_->size(), static_cast<std::size_t>(pairs))
                       : dataset_->size()),
      max_disp_(max_disp) {}

ValidationResult Validation::run(const Network& network, ProcessGroup& group) const {
  torch::NoGradGuard no_grad;
  const Matcher matcher = runtime_of(network);
  MatchOptions as_it_is;
  as_it_is.scale = 1;
  MetricOptions options;
  options.max_disparity = max_disp_;
  auto sums = torch::zeros({static_cast<int64_t>(kReported.size()) + 1}, torch::kDouble);
  // Spread over the whole list, so that a few pairs stand for it.
  for (std::size_t i = static_cast<std::size_t>(group.rank()); i < pairs_;
       i += static_cast<std::size_t>(group.size())) {
    Sample sample = dataset_->load(i * dataset_->size() / pairs_);
    const Disparity result = matcher.match(view(sample.left), view(sample.right), as_it_is);
    RegionStats regions = measure(mat(result.map), sample, options);
    const ErrorStats& all = regions.at("all");
    if (all.pixels == 0) continue;
    for (std::size_t m = 0; m < kReported.size(); ++m)
      sums[static_cast<int64_t>(m)] += find_metric(kReported[m]).value(all);
    sums[static_cast<int64_t>(kReported.size())] += 1;
  }
  group.sum_now(sums);
  ValidationResult result;
  const double count = sums[static_cast<int64_t>(kReported.size())].item<double>();
  check(count > 0, ErrorKind::kInput, "no validation pair has any truth");
  for (std::size_t m = 0; m < kReported.size(); ++m) {
    const double mean = sums[static_cast<int64_t>(m)].item<double>() / count;
    result.metrics[kReported[m]] = mean;
    result.line += fmt::format("{}{} {:.3f}", m ? "  " : "", kReported[m], mean);
  }
  result.metrics["pairs"] = count;
  result.epe = result.metrics["epe"];
  return result;
}

std::unique_ptr<Validation> make_validation(const TrainConfig& config) {
  if (config.validation.name.empty()) return nullptr;
  return std::make_unique<Validation>(open_dataset(config.validation), config.validation_pairs,
                                      config.loss.max_disp);
}

cv::Mat training_picture(const NetworkOutput& out, const Batch& batch) {
  auto image =
      batch.left[0].detach().to(torch::kCPU).permute({1, 2, 0}).to(torch::kByte).contiguous();
  cv::Mat left(static_cast<int>(image.size(0)), static_cast<int>(image.size(1)), CV_8UC3,
               image.data_ptr());
  cv::Mat rows;
  cv::cvtColor(left, rows, cv::COLOR_RGB2BGR);
  auto valid = batch.truth.valid[0];
  auto masked = torch::where(valid, batch.truth.disparity[0],
                             torch::full_like(batch.truth.disparity[0], INFINITY));
  cv::Mat truth = to_mat(masked), prediction;
  if (out.disparity.defined()) {
    prediction = to_mat(out.disparity[0]);
  } else {  // the best plane of the cost volume
    auto plane = 8 * out.proposals.seeds.seeds[0].select(2, 0).to(torch::kFloat);
    cv::resize(to_mat(plane), prediction, truth.size(), 0, 0, cv::INTER_NEAREST);
  }
  // One range for both; where a crop has no truth, the prediction's own.
  const double known = valid.to(torch::kFloat).mean().item<double>();
  const ColorRange range = robust_range(float_map(known > 0 ? truth : prediction));
  auto colours_of = [&](const cv::Mat& map) {
    Image picture = colorize(float_map(map), Colormap::kTurbo, range);
    cv::Mat bgr;
    cv::cvtColor(mat(picture), bgr, cv::COLOR_RGB2BGR);
    return bgr;
  };
  cv::Mat colors = colours_of(truth);
  if (known < 0.5) cv::dilate(colors, colors, cv::Mat());  // single points are hard to see
  cv::vconcat(rows, colors, rows);
  cv::vconcat(rows, colours_of(prediction), rows);
  return rows;
}

}  // namespace nmrf::train
