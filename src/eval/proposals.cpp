#include "eval/proposals.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check.h"
#include "nmrf/disparity.h"

namespace nmrf {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr int kCell = 8;

double share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? kNaN : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

// The one of `count` values that is nearest to `wanted`.
float nearest(const float* values, int count, float wanted) {
  float best = values[0];
  for (int i = 1; i < count; ++i)
    if (std::abs(values[i] - wanted) < std::abs(best - wanted)) best = values[i];
  return best;
}

}  // namespace

void ProposalStats::merge(const ProposalStats& other) {
  modals += other.modals;
  for (std::size_t i = 0; i < 2; ++i) {
    label_hits[i] += other.label_hits[i];
    seed_hits[i] += other.seed_hits[i];
  }
  label_error += other.label_error;
}

double ProposalStats::label_recall(std::size_t threshold) const {
  return share(label_hits.at(threshold), modals);
}
double ProposalStats::seed_recall(std::size_t threshold) const {
  return share(seed_hits.at(threshold), modals);
}
double ProposalStats::best_label_epe() const {
  return modals == 0 ? kNaN : label_error / static_cast<double>(modals);
}

nlohmann::json ProposalStats::to_json() const {
  return {{"modals", modals},
          {"label_hits", label_hits},
          {"seed_hits", seed_hits},
          {"label_error", label_error}};
}

ProposalStats ProposalStats::from_json(const nlohmann::json& json, const std::string& what) {
  ProposalStats s;
  try {
    json.at("modals").get_to(s.modals);
    json.at("label_hits").get_to(s.label_hits);
    json.at("seed_hits").get_to(s.seed_hits);
    json.at("label_error").get_to(s.label_error);
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::kInput, "{}: holds no proposal counts ({})", what, error.what());
  }
  bool sound = s.modals >= 0 && s.label_error >= 0;
  for (const auto& hits : {s.label_hits, s.seed_hits})
    for (std::int64_t count : hits) sound = sound && count >= 0 && count <= s.modals;
  check(sound, ErrorKind::kInput,
        "{}: its proposal counts contradict each other; remove the file and evaluate again", what);
  return s;
}

ProposalStats measure_proposals(const cv::Mat& labels, const cv::Mat& seeds, const cv::Mat& modals,
                                double max_disparity) {
  check(modals.type() == CV_32FC4, ErrorKind::kInput, "modals are maps of four float channels");
  for (const cv::Mat* map : {&labels, &seeds})
    check(map->depth() == CV_32F && map->size() == modals.size(), ErrorKind::kInput,
          "there are {}x{} cells of labels and {}x{} of modals", map->cols, map->rows, modals.cols,
          modals.rows);
  ProposalStats stats;
  for (int y = 0; y < modals.rows; ++y)
    for (int x = 0; x < modals.cols; ++x) {
      const float* label = labels.ptr<float>(y) + x * labels.channels();
      const float* seed = seeds.ptr<float>(y) + x * seeds.channels();
      const float* modal = modals.ptr<float>(y) + x * 4;
      for (int i = 0; i < 4; ++i) {
        if (!std::isfinite(modal[i])) continue;
        if (max_disparity > 0 && modal[i] >= static_cast<float>(max_disparity)) continue;
        const double label_error = std::abs(nearest(label, labels.channels(), modal[i]) - modal[i]);
        const double seed_error = std::abs(nearest(seed, seeds.channels(), modal[i]) - modal[i]);
        ++stats.modals;
        stats.label_error += label_error;
        for (std::size_t t = 0; t < 2; ++t) {
          stats.label_hits[t] += label_error < kLabelRecalls[t];
          stats.seed_hits[t] += seed_error < kSeedRecalls[t];
        }
      }
    }
  return stats;
}

cv::Mat best_labels(const cv::Mat& labels, const cv::Mat& truth) {
  check(labels.depth() == CV_32F && truth.type() == CV_32FC1 &&
            labels.cols >= (truth.cols + kCell - 1) / kCell &&
            labels.rows >= (truth.rows + kCell - 1) / kCell,
        ErrorKind::kInput, "the labels of {}x{} cells do not cover a truth of {}x{} pixels",
        labels.cols, labels.rows, truth.cols, truth.rows);
  cv::Mat best(truth.size(), CV_32FC1, cv::Scalar(kInvalidDisparity));
  for (int y = 0; y < truth.rows; ++y)
    for (int x = 0; x < truth.cols; ++x) {
      const float t = truth.at<float>(y, x);
      if (!std::isfinite(t)) continue;
      const float* label = labels.ptr<float>(y / kCell) + x / kCell * labels.channels();
      best.at<float>(y, x) = nearest(label, labels.channels(), t);
    }
  return best;
}

void WinnerHistogram::add(const cv::Mat& confidence) {
  check(confidence.type() == CV_32FC1, ErrorKind::kInput,
        "winner probabilities are a map of one float channel");
  for (int y = 0; y < confidence.rows; ++y)
    for (int x = 0; x < confidence.cols; ++x) {
      const float p = confidence.at<float>(y, x);
      if (!(p >= 0)) continue;
      ++counts[static_cast<std::size_t>(std::min(kBins - 1, static_cast<int>(p * kBins)))];
    }
}

void WinnerHistogram::merge(const WinnerHistogram& other) {
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
}

std::int64_t WinnerHistogram::total() const {
  std::int64_t sum = 0;
  for (std::int64_t count : counts) sum += count;
  return sum;
}

double WinnerHistogram::mean() const {
  if (total() == 0) return kNaN;
  double sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i)
    sum += static_cast<double>(counts[i]) * (static_cast<double>(i) + 0.5) / kBins;
  return sum / static_cast<double>(total());
}

WinnerHistogram WinnerHistogram::from_json(const nlohmann::json& json, const std::string& what) {
  WinnerHistogram histogram;
  try {
    json.get_to(histogram.counts);
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::kInput, "{}: holds no histogram of winners ({})", what, error.what());
  }
  for (std::int64_t count : histogram.counts)
    check(count >= 0, ErrorKind::kInput, "{}: a histogram of winners has a negative count", what);
  return histogram;
}

}  // namespace nmrf
