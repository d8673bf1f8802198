// How good candidate labels are before inference chooses among them (paper Table 4), and how sure
// inference is of its choice (paper Figure 4b).
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <opencv2/core.hpp>
#include <string>

namespace nmrf {

inline constexpr std::array<double, 2> kLabelRecalls{3, 8};  // px
inline constexpr std::array<double, 2> kSeedRecalls{8, 16};  // px

// Counts over superpixel modals (data/modals.h): each modal looks for the nearest label of its
// cell.
struct ProposalStats {
  std::int64_t modals = 0;                   // looked for
  std::array<std::int64_t, 2> label_hits{};  // nearest candidate label less than 3, 8 px away
  std::array<std::int64_t, 2> seed_hits{};   // nearest label seed less than 8, 16 px away
  double label_error = 0;                    // sum of |nearest candidate label - modal|, px

  void merge(const ProposalStats& other);
  // In per cent; NaN without modals.
  double label_recall(std::size_t threshold) const;
  double seed_recall(std::size_t threshold) const;
  double best_label_epe() const;  // px
  nlohmann::json to_json() const;
  // Throws Error(kInput) naming `what`.
  static ProposalStats from_json(const nlohmann::json& json, const std::string& what);
};

// labels, seeds: CV_32FC(k), px, one element a cell of 8 x 8 pixels. modals: CV_32FC4 of the same
// size, px, NaN = null. Modals from `max_disparity` on are not looked for (0 = all are). Throws
// Error(kInput) when sizes differ.
ProposalStats measure_proposals(const cv::Mat& labels, const cv::Mat& seeds, const cv::Mat& modals,
                                double max_disparity);

// At each pixel with known truth (CV_32FC1, px) the label of its cell that is nearest to it, else
// +infinity: what a perfect choice among the labels would give, for pictures (paper Figure 2b).
cv::Mat best_labels(const cv::Mat& labels, const cv::Mat& truth);

// Counts of winner probabilities in twenty equal bins of [0, 1].
struct WinnerHistogram {
  static constexpr int kBins = 20;
  std::array<std::int64_t, kBins> counts{};

  void add(const cv::Mat& confidence);  // CV_32FC1
  void merge(const WinnerHistogram& other);
  std::int64_t total() const;
  double mean() const;  // of the bins' middles; NaN when empty
  nlohmann::json to_json() const { return counts; }
  static WinnerHistogram from_json(const nlohmann::json& json, const std::string& what);
};

}  // namespace nmrf
