// Which pixels of a result become points, and where they are; for clouds and meshes.
#pragma once

#include <array>

#include "nmrf/geometry.h"

namespace nmrf {

class PixelChoice {
 public:
  // Throws Error(kUsage) when options or sizes make no sense. The arguments must outlive it.
  PixelChoice(const Disparity& disparity, const Calibration& calibration,
              const PointCloudOptions& options);
  // The pixel is known, in the range of depth, and of a state and confidence that the options want.
  bool wanted(int y, int x) const;
  std::array<float, 3> position(int y, int x) const;
  // Of length 1, towards the camera, from the nearer of the neighbours on either side; zeros
  // without neighbours.
  std::array<float, 3> normal(int y, int x) const;

 private:
  bool at_edge(int y, int x) const;
  const Disparity& disparity_;
  const Calibration& calibration_;
  const PointCloudOptions& options_;
  FloatMap depth_;
  int unwanted_;
};

}  // namespace nmrf
