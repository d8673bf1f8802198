#include <cmath>

#include "core/check.h"
#include "nmrf/disparity.h"

namespace nmrf {

void check_consistency(Disparity& own, const Disparity& other, View own_view, float threshold) {
  check(own.map.same_size(other.map), ErrorKind::kUsage,
        "the left-right check needs two disparity maps of one size");
  const int width = own.map.width(), height = own.map.height();
  if (!own.mask.same_size(own.map)) own.mask = ByteMap(width, height);
  const float direction = own_view == View::kLeft ? -1.0f : 1.0f;
  const auto last = static_cast<float>(width - 1);
  for (int y = 0; y < height; ++y) {
    const float *mine = own.map.row(y), *theirs = other.map.row(y);
    std::uint8_t* states = own.mask.row(y);
    for (int x = 0; x < width; ++x) {
      const float at = static_cast<float>(x) + direction * mine[x];
      std::uint8_t state = kOccluded;
      if (at >= 0 && at <= last) {  // false for NaN
        const float seen = theirs[std::lround(at)];
        if (std::abs(seen - mine[x]) <= threshold) state = kMatched;
      } else if (std::isfinite(mine[x])) {
        state = kOutOfView;
      }
      states[x] = static_cast<std::uint8_t>((states[x] & kFilled) | state);
    }
  }
}

}  // namespace nmrf
