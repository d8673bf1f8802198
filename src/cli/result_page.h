// A result as one HTML file that needs nothing else: photo, map with values, confidence, point
// cloud.
#pragma once

#include <optional>
#include <string>

#include "nmrf/geometry.h"

namespace nmrf::cli {

// The page. result: `map`, and `confidence` and `mask` where they are not empty. image: of any size
// with the shape of the map; empty: the disparity in grey instead.
std::string result_page(const std::string& name, const Disparity& result, const ImageView& image,
                        const std::optional<Calibration>& calibration);

}  // namespace nmrf::cli
