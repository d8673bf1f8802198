#include <cmath>
#include <limits>

#include "core/check.h"
#include "core/log.h"
#include "nmrf/geometry.h"

namespace nmrf {
namespace {

// Says so when most disparities lie behind the camera: a wrong calibration, not a far scene.
void warn_behind(const Calibration& c, std::size_t valid, std::size_t behind) {
  if (behind == 0 || (behind < valid && behind * 2 <= valid)) return;
  const std::string name = c.source.empty() ? "calibration" : c.source;
  if (c.doffs < 0)
    log_warning(
        "{}: doffs is {} px, and {} of {} disparities are too small for it: their points would lie "
        "behind the camera and are left out. Check its sign; it is cx of the right camera minus cx "
        "of the left one.",
        name, c.doffs, behind, valid);
  else if (behind == valid)
    log_warning(
        "{}: none of the {} disparities is positive, so that no pixel has a depth. Are left "
        "and right swapped?",
        name, valid);
}

}  // namespace

FloatMap depth_from_disparity(const FloatMap& disparity, const Calibration& calibration) {
  calibration.validate();
  check(!disparity.empty(), ErrorKind::kUsage, "the disparity map is empty.");
  FloatMap depth(disparity.width(), disparity.height(), std::numeric_limits<float>::infinity());
  const double product = calibration.baseline * calibration.fx;
  std::size_t valid = 0, behind = 0;
  const float* d = disparity.data();
  float* z = depth.data();
  for (std::size_t i = 0; i < disparity.size(); ++i) {
    if (!std::isfinite(d[i])) continue;
    ++valid;
    const double shift = d[i] + calibration.doffs;
    if (shift > 0)
      z[i] = static_cast<float>(product / shift);
    else
      ++behind;
  }
  warn_behind(calibration, valid, behind);
  return depth;
}

FloatMap depth_from_disparity(const Disparity& disparity, const Calibration& calibration,
                              bool filled) {
  FloatMap depth = depth_from_disparity(disparity.map, calibration);
  if (filled || disparity.mask.empty()) return depth;
  check(disparity.mask.same_size(disparity.map), ErrorKind::kUsage,
        "the mask of a disparity map has its size, {}x{}; this one has {}x{} pixels.",
        disparity.map.width(), disparity.map.height(), disparity.mask.width(),
        disparity.mask.height());
  const std::uint8_t* state = disparity.mask.data();
  for (float& z : depth)
    if (*state++ & kFilled) z = std::numeric_limits<float>::infinity();
  return depth;
}

FloatMap depth_sigma(const Disparity& disparity, const Calibration& calibration, bool filled) {
  check(disparity.expected_error.same_size(disparity.map), ErrorKind::kUsage,
        "the error of a depth comes from the expected error of its disparity, which this result "
        "does not have: its model holds no error model.");
  FloatMap depth = depth_from_disparity(disparity, calibration, filled);
  const float *d = disparity.map.data(), *error = disparity.expected_error.data();
  for (std::size_t i = 0; i < depth.size(); ++i)
    if (float& z = depth.data()[i]; std::isfinite(z))
      z *= static_cast<float>(error[i] / (d[i] + calibration.doffs));
  return depth;
}

}  // namespace nmrf
