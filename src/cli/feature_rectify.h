// The rectification without calibration, for the programs that have OpenCV.
#pragma once

namespace nmrf::cli {

void use_feature_rectifier();

}  // namespace nmrf::cli
