#include "io/video.h"

#include <dlfcn.h>

#include "core/check.h"
#include "nmrf/version.h"

namespace nmrf {
namespace fs = std::filesystem;

namespace {

VideoEntry* load_entry(const fs::path& video, const std::vector<fs::path>& folders) {
  for (const fs::path& folder : folders) {
    const fs::path file = folder / kVideoModule;
    std::error_code ignored;
    if (!fs::exists(file, ignored)) continue;
    // Never closed: decoders leave threads behind. Opening it again costs nothing.
    void* module = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* entry = module ? ::dlsym(module, kVideoEntry) : nullptr;
    if (!entry) {
      const char* reason = ::dlerror();
      fail(ErrorKind::kUsage, "{}: the module for videos cannot be loaded: {}. Install nmrf again.",
           file.string(), reason ? reason : "it has no entry");
    }
    return reinterpret_cast<VideoEntry*>(entry);
  }
  fail(ErrorKind::kUsage,
       "{}: videos are read by the module {}, which is not installed. Build nmrf with "
       "NMRF_BUILD_EVAL=ON (it needs OpenCV: libopencv-dev), or turn the video into pictures.",
       video.string(), kVideoModule);
}

}  // namespace

std::vector<fs::path> video_module_folders() {
  std::error_code ignored;
  const fs::path beside = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  std::vector<fs::path> folders{beside, beside.parent_path() / "lib" / "nmrf"};
  constexpr int kDepth = 4;  // tests lie a few folders below the top of the build tree
  fs::path above = beside;
  for (int i = 0; i < kDepth && above.has_relative_path(); ++i, above = above.parent_path())
    if (fs::exists(above / "CMakeCache.txt", ignored)) folders.push_back(above);
  return folders;
}

std::unique_ptr<VideoReader> open_video(const fs::path& path,
                                        const std::vector<fs::path>& module_folders) {
  std::error_code ignored;
  check(fs::is_regular_file(path, ignored), ErrorKind::kInput, "{}: there is no such video",
        path.string());
  char message[512] = "";
  std::unique_ptr<VideoReader> reader(
      load_entry(path, module_folders)(path.c_str(), NMRF_VERSION, message, sizeof message));
  check(reader != nullptr, ErrorKind::kInput, "{}: {}", path.string(), message);
  return reader;
}

std::unique_ptr<VideoReader> open_video(const fs::path& path) {
  return open_video(path, video_module_folders());
}

}  // namespace nmrf
