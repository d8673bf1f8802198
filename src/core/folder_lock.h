// A folder with one writer at a time.
#pragma once

#include <filesystem>
#include <string>

namespace nmrf {

// Held until the object or the process ends, however that happens. `shared`: others that share may
// hold it too, such as the ranks of one job. File systems without locks do without.
class FolderLock {
 public:
  // Throws Error(kUsage) when another process holds it; `who` is what that process is called.
  FolderLock(const std::filesystem::path& folder, const std::string& who, bool shared = false);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_;
};

}  // namespace nmrf
