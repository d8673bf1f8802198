// What the tests share.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>

#include "nmrf/error.h"

namespace nmrf::test {

// A fresh folder below the system's temporary one, removed with everything in it at the end.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

// The folder of reference data (`golden/`, `data/`): $NMRF_SHARED, or ../shared beside the source
// tree when that is there, or empty. Tests that need it say "skipped" without it.
std::filesystem::path shared_folder();

// Runs `action` and returns the message of the nmrf::Error it must throw, whose kind must be
// `kind`.
std::string error_of(ErrorKind kind, const std::function<void()>& action);

}  // namespace nmrf::test

// Skips the running test unless the reference data are at hand.
#define NMRF_NEED_SHARED(relative)                                        \
  if (nmrf::test::shared_folder().empty() ||                              \
      !std::filesystem::exists(nmrf::test::shared_folder() / (relative))) \
  GTEST_SKIP() << "skipped: no reference data (" << (relative) << "); set NMRF_SHARED"
