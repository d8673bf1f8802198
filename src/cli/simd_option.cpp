#include "cli/simd_option.h"

#include "kernels/peak.h"

namespace nmrf::cli {

CLI::Option* add_simd(CLI::App& app) {
  return app
      .add_option_function<std::string>(
          "--simd", [](const std::string& widest) { kernels::limit_simd(widest); },
          "Widest instruction set to use: sse4, avx2, avx512 or vnni")
      ->check(CLI::IsMember({"sse4", "avx2", "avx512", "vnni"}));
}

}  // namespace nmrf::cli
