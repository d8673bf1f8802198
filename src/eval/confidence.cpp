#include "eval/confidence.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/check.h"

namespace nmrf {
namespace {

// What is watched of the pixels in `order`, best first, as pixels are removed from its end.
ConfidenceMeasure::Curve sparsified(const std::vector<std::size_t>& order,
                                    const std::vector<float>& errors, double threshold) {
  constexpr int kSteps = ConfidenceMeasure::kSteps;
  std::vector<double> sums{0};
  sums.reserve(order.size() + 1);
  for (std::size_t i : order)
    sums.push_back(sums.back() + (threshold > 0 ? (errors[i] > threshold ? 100 : 0) : errors[i]));
  ConfidenceMeasure::Curve curve;
  for (int step = 0; step <= kSteps; ++step) {
    const double kept = step < kSteps ? 1 - static_cast<double>(step) / kSteps : 0.5 / kSteps;
    const auto count = std::max<std::size_t>(
        1, static_cast<std::size_t>(std::llround(kept * static_cast<double>(order.size()))));
    curve[static_cast<std::size_t>(step)] = sums[count] / static_cast<double>(count);
  }
  return curve;
}

}  // namespace

void ConfidenceMeasure::add(const std::vector<float>& errors,
                            const std::vector<float>& confidence) {
  check(errors.size() == confidence.size(), ErrorKind::kUsage,
        "{} errors and {} confidences; expected one of each per pixel", errors.size(),
        confidence.size());
  if (errors.empty()) return;
  ++images_;
  std::vector<std::size_t> order(errors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Stable: pixels of one confidence leave in the order of the image, not of their errors.
  auto by = [&](const std::vector<float>& values, bool rising) {
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return rising ? values[a] < values[b] : values[a] > values[b];
    });
    return sparsified(order, errors, threshold_);
  };
  const Curve own = by(confidence, false), best = by(errors, true);
  for (std::size_t i = 0; i < own.size(); ++i) {
    curve_[i] += own[i];
    optimal_[i] += best[i];
  }
  for (std::size_t i = 0; i < errors.size(); ++i) {
    const double p = std::clamp<double>(confidence[i], 0, 1);
    Bin& bin =
        bins_[static_cast<std::size_t>(std::min<int>(kBins - 1, static_cast<int>(p * kBins)))];
    ++bin.count;
    bin.right += errors[i] <= threshold_;
    bin.sum += p;
  }
}

ConfidenceMeasure::Curve ConfidenceMeasure::curve() const {
  Curve mean = curve_;
  for (double& value : mean) value /= static_cast<double>(std::max<std::int64_t>(1, images_));
  return mean;
}

ConfidenceMeasure::Curve ConfidenceMeasure::optimal() const {
  Curve mean = optimal_;
  for (double& value : mean) value /= static_cast<double>(std::max<std::int64_t>(1, images_));
  return mean;
}

double ConfidenceMeasure::area(const Curve& curve) {
  double sum = (curve.front() + curve.back()) / 2;
  for (std::size_t i = 1; i + 1 < curve.size(); ++i) sum += curve[i];
  return sum / kSteps;
}

double ConfidenceMeasure::calibration_error() const {
  double gap = 0;
  std::int64_t pixels = 0;
  for (const Bin& bin : bins_) {
    gap += std::abs(bin.sum - static_cast<double>(bin.right));
    pixels += bin.count;
  }
  return 100 * gap / static_cast<double>(std::max<std::int64_t>(1, pixels));
}

double ConfidenceMeasure::mean_confidence() const {
  double sum = 0;
  std::int64_t pixels = 0;
  for (const Bin& bin : bins_) sum += bin.sum, pixels += bin.count;
  return 100 * sum / static_cast<double>(std::max<std::int64_t>(1, pixels));
}

double ConfidenceMeasure::share_right() const {
  std::int64_t right = 0, pixels = 0;
  for (const Bin& bin : bins_) right += bin.right, pixels += bin.count;
  return 100 * static_cast<double>(right) / static_cast<double>(std::max<std::int64_t>(1, pixels));
}

}  // namespace nmrf
