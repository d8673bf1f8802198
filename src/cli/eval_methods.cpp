#include "cli/eval_methods.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <limits>

#include "cli/model_access.h"
#include "core/check.h"
#include "core/sha256.h"
#include "nmrf/opencv.h"
#include "nmrf/version.h"

namespace nmrf::cli {
namespace {

bool by_formula(const std::string& model) { return model.starts_with("formula:"); }

// CV_32FC(labels), one element per cell.
cv::Mat mat_of(const CellLabels& labels) {
  if (labels.empty()) return {};
  return cv::Mat(labels.height, labels.width, CV_32FC(labels.count),
                 const_cast<float*>(labels.values.data()))
      .clone();
}

SegmenterMaker g_segmenter = nullptr;

}  // namespace

void set_segmenter(SegmenterMaker maker) { g_segmenter = maker; }
bool has_segmenter() { return g_segmenter != nullptr; }
Segmenter make_segmenter(const std::filesystem::path& cache) { return g_segmenter(cache); }

std::string model_name(const std::string& model) {
  if (by_formula(model)) return model;
  return std::filesystem::path(model).stem().string();
}

MatcherMethod::MatcherMethod(std::string name, const std::string& model,
                             const MatcherOptions& options, const MatchOptions& how)
    : name_(std::move(name)), how_(how), matcher_(Matcher::load(model, options)) {
  how_.full_size = true;
  about_ = {{"model", model_name(model)},
            {"sha256", by_formula(model) ? model : sha256_of_file(model)},
            {"set", options.set},
            {"max_disp", matcher_.max_disp()},
            {"scale", how.scale ? nlohmann::json(*how.scale) : nlohmann::json("auto")},
            {"align", how.align},
            {"device", matcher_.device()},
            {"precision", matcher_.precision() == Precision::kInt8 ? "int8" : "float32"},
            {"nmrf", NMRF_VERSION}};
}

Prediction MatcherMethod::predict(const cv::Mat& left, const cv::Mat& right) const {
  const auto start = std::chrono::steady_clock::now();
  const Disparity result = matcher_.match(view(left), view(right), how_);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  Prediction prediction;
  prediction.disparity = mat(result.map).clone();
  prediction.confidence = mat(result.posterior).clone();
  if (!result.mask.empty())  // no label won there
    prediction.confidence.setTo(std::numeric_limits<float>::quiet_NaN(),
                                mat(result.mask) & kFilled);
  // Cells of scaled images do not line up with those of the truth; left to the model, they are
  // those of the images as they are.
  if (how_.scale.value_or(1) == 1) {
    prediction.labels = mat_of(result.labels);
    prediction.seeds = mat_of(result.seeds);
  }
  prediction.seconds = elapsed.count();
  return prediction;
}

std::vector<Variant> ablations(const std::string& model) {
  const ModelOptions own = model_options(model);
  std::vector<Variant> variants;
  for (int k = 1; k <= 6; ++k)
    if (k != own.labels)
      variants.push_back({fmt::format("k={}", k), {fmt::format("seeds.labels={}", k)}});
  const std::pair<SelfEdges, const char*> edges[] = {{SelfEdges::kNone, "no self edges"},
                                                     {SelfEdges::kShared, "shared self edges"},
                                                     {SelfEdges::kOwn, "own self edges"}};
  for (const auto& [value, name] : edges)
    if (value != own.self_edges)
      variants.push_back({name, {"inference.self_edges=" + enum_name(value)}});
  variants.push_back({own.adaptive_bias ? "fixed bias" : "adaptive bias",
                      {fmt::format("inference.adaptive_bias={}", !own.adaptive_bias)}});
  variants.push_back(
      {own.position_aggregation ? "no position aggregation" : "position aggregation",
       {fmt::format("inference.position_aggregation={}", !own.position_aggregation)}});
  for (int count = 0; count <= 2; ++count)
    if (count != own.refinements)
      variants.push_back({count == 0   ? "no refinement"
                          : count == 1 ? "one refinement"
                                       : "two refinements",
                          {fmt::format("refinement.count={}", count)}});
  const bool cross = own.seed_neighbourhood == SeedNeighbourhood::kCross;
  variants.push_back({cross ? "local windows" : "cross-shaped windows",
                      {std::string("propagation.neighbourhood=") + (cross ? "local" : "cross")}});
  return variants;
}

}  // namespace nmrf::cli
