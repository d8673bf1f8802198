#include "support/support.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>

namespace nmrf::test {
namespace fs = std::filesystem;

TempFolder::TempFolder() {
  static std::atomic<int> counter{0};
  path_ = fs::temp_directory_path() /
          ("nmrf-test-" + std::to_string(::getpid()) + "-" + std::to_string(counter++));
  fs::create_directories(path_);
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

fs::path shared_folder() {
  if (const char* given = std::getenv("NMRF_SHARED")) return given;
  fs::path beside = fs::path(NMRF_SOURCE_DIR).parent_path() / "shared";
  return fs::exists(beside) ? beside : fs::path();
}

std::string error_of(ErrorKind kind, const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), static_cast<int>(kind)) << error.what();
    return error.what();
  } catch (const std::exception& other) {
    ADD_FAILURE() << "expected nmrf::Error, got: " << other.what();
    return "";
  }
  ADD_FAILURE() << "expected nmrf::Error, nothing was thrown";
  return "";
}

}  // namespace nmrf::test
