// Finding the model to use when none is named.
#pragma once

#include <string>

namespace nmrf::cli {

// `given` if not empty, else $NMRF_MODEL, else the model shipped with the program. Throws
// Error(kModel) that says how to get one.
std::string model_path(const std::string& given);

}  // namespace nmrf::cli
