// A row of the right view, as a disparity map of the left one tells it.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace nmrf {

inline constexpr float kJump = 1;  // px between two surfaces

class RightRow {
 public:
  static constexpr float kSeen = std::numeric_limits<float>::infinity();

  // row: the map's, `width` long. Remembers no pointer.
  void look(const float* row, int width) {
    nearest_.assign(static_cast<std::size_t>(width), 0);
    inside_ = 0;
    for (int x = 0; x < width; ++x) {
      if (static_cast<float>(x) < row[x] && std::isfinite(row[x])) inside_ = x + 1;
      const int at = partner(x, row[x]);
      if (at < 0) continue;
      float& nearest = nearest_[static_cast<std::size_t>(at)];
      nearest = std::max(nearest, row[x]);
    }
  }

  // The first column from which on no partner lies beyond the right view's left edge.
  int inside() const { return inside_; }

  // Where the right view has column x if its disparity is `value`. -1: beyond an edge, or not
  // known.
  int partner(int x, float value) const {
    const float at = static_cast<float>(x) - value;
    return at >= 0 && at <= static_cast<float>(nearest_.size() - 1)
               ? static_cast<int>(std::lround(at))
               : -1;
  }

  // The disparity of what hides column x if its own is `value`; kSeen: nothing does.
  float hides(int x, float value) const {
    const int at = partner(x, value);
    const float nearest = at >= 0 ? nearest_[static_cast<std::size_t>(at)] : value;
    return nearest > value + kJump ? nearest : kSeen;
  }

  // Whether the right view would not show column x if its disparity were `value`.
  bool unseen(int x, float value) const {
    return value > static_cast<float>(x) - kJump || hides(x, value) != kSeen;
  }

 private:
  std::vector<float> nearest_;  // the largest disparity a column shows; 0: none
  int inside_ = 0;
};

}  // namespace nmrf
