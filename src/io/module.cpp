#include "io/module.h"

#include <dlfcn.h>

#include "core/check.h"

namespace nmrf {
namespace fs = std::filesystem;

std::vector<fs::path> module_folders() {
  std::error_code ignored;
  const fs::path beside = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  std::vector<fs::path> folders{beside, beside.parent_path() / "lib" / "nmrf"};
  constexpr int kDepth = 4;  // tests lie a few folders below the top of the build tree
  fs::path above = beside;
  for (int i = 0; i < kDepth && above.has_relative_path(); ++i, above = above.parent_path())
    if (fs::exists(above / "CMakeCache.txt", ignored)) folders.push_back(above);
  return folders;
}

void* load_module_entry(const char* module, const char* name, const std::string& what,
                        const std::vector<fs::path>& folders) {
  for (const fs::path& folder : folders) {
    const fs::path file = folder / module;
    std::error_code ignored;
    if (!fs::exists(file, ignored)) continue;
    // Never closed: decoders and toolkits leave threads behind. Opening it again costs nothing.
    void* loaded = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* entry = loaded ? ::dlsym(loaded, name) : nullptr;
    if (!entry) {
      const char* reason = ::dlerror();
      fail(ErrorKind::kUsage, "{}: the module {} cannot be loaded: {}. Install nmrf again.", what,
           file.string(), reason ? reason : "it has no entry");
    }
    return entry;
  }
  fail(
      ErrorKind::kUsage,
      "{}: videos, cameras and windows are served by modules; {} is not installed. Build nmrf with "
      "NMRF_BUILD_EVAL=ON (it needs OpenCV: libopencv-dev), or turn the video into pictures.",
      what, module);
}

}  // namespace nmrf
