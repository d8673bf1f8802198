// Keeps libtorch's headers out of main.cpp.
#pragma once

#include <string>

namespace nmrf::cli {

// "libtorch 1.13.1, no CUDA"
std::string torch_version();

}  // namespace nmrf::cli
