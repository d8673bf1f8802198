#include "io/window.h"

#include "core/check.h"
#include "io/module.h"
#include "nmrf/version.h"

namespace nmrf {

std::unique_ptr<PictureWindow> open_window(const std::string& title) {
  auto* entry = reinterpret_cast<WindowEntry*>(
      load_module_entry(kWindowModule, kWindowEntry, "a window", module_folders()));
  char message[512] = "";
  std::unique_ptr<PictureWindow> window(
      entry(title.c_str(), NMRF_VERSION, message, sizeof message));
  check(window != nullptr, ErrorKind::kUsage, "no window can be opened: {}", message);
  return window;
}

}  // namespace nmrf
