#include "core/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "core/check.h"

namespace nmrf {

FolderLock::FolderLock(const std::filesystem::path& folder, const std::string& who, bool shared)
    : fd_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (fd_ < 0 || ::flock(fd_, (shared ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0) return;
  if (errno != EWOULDBLOCK) return;
  ::close(fd_);
  fail(ErrorKind::kUsage, "{}: another {} is writing there. Stop it first, or name another folder.",
       folder.string(), who);
}

FolderLock::~FolderLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace nmrf
