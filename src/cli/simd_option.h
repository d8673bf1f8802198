// --simd: the kernels use no wider instruction set.
#pragma once

#include <CLI/CLI.hpp>

namespace nmrf::cli {

CLI::Option* add_simd(CLI::App& app);

}  // namespace nmrf::cli
