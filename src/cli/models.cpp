#include "cli/models.h"

#include <cstdlib>
#include <filesystem>

#include "cli/program.h"
#include "core/check.h"

namespace nmrf::cli {
namespace fs = std::filesystem;

std::string model_path(const std::string& given) {
  if (!given.empty()) return given;
  if (const char* named = std::getenv("NMRF_MODEL"); named && *named) return named;
  constexpr const char* kShipped = "nmrf-fast.safetensors";
  std::error_code ignored;
  const fs::path own = program_folder();
  for (const fs::path& folder : {own / "../share/nmrf/models", own / "share/nmrf/models"})
    if (fs::exists(folder / kShipped, ignored)) return (folder / kShipped).lexically_normal();
  fail(ErrorKind::kModel,
       "no model found: the bundled nmrf-fast.safetensors is not installed next to this program. "
       "Give a model with --model FILE or $NMRF_MODEL; the authors' sceneflow.pth and kitti.pth "
       "work directly.");
}

}  // namespace nmrf::cli
