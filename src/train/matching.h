// Ground-truth modals against the proposals of one cell: online suppression and optimal matching.
#pragma once

#include <span>
#include <vector>

namespace nmrf::train {

inline constexpr double kOnlineSuppress = 8;  // px: closer modals count as one

// Smooth L1 with beta = 1.
inline double smooth_l1(double difference) {
  const double size = difference < 0 ? -difference : difference;
  return size < 1 ? 0.5 * size * size : size - 0.5;
}

// Matches one cell after another; keeps its memory between them. One object a thread.
class ModalMatcher {
 public:
  // proposals: px, at least one. modals: px, no NaN, any number. Writes to targets[j] (as many as
  // there are proposals) the modal of proposal j, or NaN, and returns the number of pairs:
  //   1. The modals are sorted by proximity, the distance to the closest proposal (equally close
  //   ones keep
  //      their order); each suppresses the later ones less than 8 px from it.
  //   2. Of the rest as many as possible are paired with proposals one to one, such that the sum of
  //      smooth L1 differences is the least of all ways to do so. With fewer proposals than modals
  //      the modals that cost least are chosen.
  // The cost is a convex function of a difference of numbers, so crossing two pairs never lowers
  // the sum: among the best ways there is one that keeps the order along the disparity axis, and
  // that one is found, exactly and for any number of proposals, by dynamic programming.
  int match(std::span<const double> proposals, std::span<const double> modals,
            std::span<double> targets);

 private:
  void suppress(std::span<const double> proposals, std::span<const double> modals);

  struct Place {
    double value;  // px
    int index;     // among the proposals
  };
  std::vector<double> kept_, distance_, cost_;
  std::vector<Place> order_;
  std::vector<char> paired_;
};

}  // namespace nmrf::train
