// Is a confidence worth its name? Sparsification and calibration, as the field measures them.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace nmrf {

// Removes the least confident pixels of an image step by step and watches what is left; and
// compares probabilities with how often they came true.
class ConfidenceMeasure {
 public:
  static constexpr int kSteps = 20;  // of 5 % of the pixels
  static constexpr int kBins = 20;   // of the probabilities, of one width

  // threshold: px. What is watched is the share of errors above it, in per cent; with 0 it is the
  // mean error, px.
  explicit ConfidenceMeasure(double threshold) : threshold_(threshold) {}

  // One image: the error of each pixel, px, and its confidence, higher is better. An image without
  // pixels does not count.
  void add(const std::vector<float>& errors, const std::vector<float>& confidence);

  // Means over images. The curve has kSteps + 1 points: what is watched among the pixels that are
  // left after i / kSteps of them were removed; its last point has the best 1 / (2 kSteps). The
  // area below it is the mean of the curve.
  using Curve = std::array<double, kSteps + 1>;
  Curve curve() const;    // least confident first
  Curve optimal() const;  // greatest error first: no confidence can do better
  static double area(const Curve& curve);

  // Over all pixels of all images: how many have a confidence in each bin, their mean confidence,
  // and the share of them whose error is at most the threshold.
  struct Bin {
    std::int64_t count = 0, right = 0;
    double sum = 0;  // of confidences
  };
  const std::array<Bin, kBins>& bins() const { return bins_; }
  // Expected calibration error, per cent: the mean gap between both, weighted by count.
  double calibration_error() const;
  double mean_confidence() const;  // per cent
  double share_right() const;      // per cent
  std::int64_t images() const { return images_; }

 private:
  double threshold_;
  std::int64_t images_ = 0;
  Curve curve_{}, optimal_{};  // sums over images
  std::array<Bin, kBins> bins_{};
};

}  // namespace nmrf
