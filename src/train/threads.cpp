#include "train/threads.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "core/log.h"

namespace nmrf::train {

void set_threads(int count) {
  at::set_num_threads(count);
  // OpenBLAS keeps threads of its own, which libtorch does not know of.
  using Setter = void (*)(int);
  if (auto setter = reinterpret_cast<Setter>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads")))
    setter(count);
}

void warn_of_slow_blas() {
  Dl_info info{};
  void* symbol = dlsym(RTLD_DEFAULT, "sgemm_");
  if (!symbol || dladdr(symbol, &info) == 0 || !info.dli_fname) return;
  std::error_code ignored;
  const std::string file = std::filesystem::canonical(info.dli_fname, ignored).string();
  if (file.find("/blas/libblas.so") == std::string::npos) return;
  log_warning(
      "the BLAS under libtorch is the reference one ({}), about 25 times slower than it need be. "
      "Install libopenblas0-pthread.",
      file);
}

}  // namespace nmrf::train
