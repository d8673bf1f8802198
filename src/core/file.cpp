#include "core/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "core/check.h"

namespace nmrf {
namespace fs = std::filesystem;

namespace {

std::string errno_text() { return std::strerror(errno); }

// Opens for reading; a folder, a missing or an unreadable file is an Error naming the path.
int open_for_reading(const fs::path& path, ErrorKind kind, struct stat& info) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  check(fd >= 0, kind, "{}: cannot be opened: {}. Check the path and its permissions.",
        path.string(), errno_text());
  if (::fstat(fd, &info) != 0 || S_ISDIR(info.st_mode)) {
    ::close(fd);
    fail(kind, "{}: is a folder; expected a file", path.string());
  }
  return fd;
}

}  // namespace

AtomicFile::AtomicFile(fs::path target) : target_(std::move(target)) {
  static std::atomic<unsigned> counter{0};
  // O_EXCL: two containers that share a folder may have equal process ids.
  do {
    temporary_ = target_;
    temporary_ += fmt::format(".tmp-{}-{}", ::getpid(), counter++);
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (fd_ < 0 && errno == EEXIST);
  check(fd_ >= 0, ErrorKind::kFailure,
        "{}: cannot be written: {}. Check that the folder exists and is writable.",
        target_.string(), errno_text());
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::write(const void* data, std::size_t bytes) {
  const char* cursor = static_cast<const char*>(data);
  while (bytes > 0) {
    ssize_t written = ::write(fd_, cursor, bytes);
    if (written < 0 && errno == EINTR) continue;
    check(written > 0, ErrorKind::kFailure,
          "{}: writing failed: {}. Any previous file is unchanged.", target_.string(),
          errno_text());
    cursor += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

void AtomicFile::commit() {
  bool ok = ::fsync(fd_) == 0;
  ok = (::close(fd_) == 0) && ok;
  fd_ = -1;
  if (!ok || ::rename(temporary_.c_str(), target_.c_str()) != 0) {
    std::string reason = errno_text();
    ::unlink(temporary_.c_str());
    fail(ErrorKind::kFailure, "{}: writing failed: {}. Any previous file is unchanged.",
         target_.string(), reason);
  }
}

void write_file(const fs::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

void write_file(const fs::path& path, const std::vector<std::uint8_t>& bytes) {
  write_file(path, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

std::string read_file(const fs::path& path, ErrorKind kind, std::uint64_t limit) {
  struct stat info {};
  int fd = open_for_reading(path, kind, info);
  std::string content;
  char buffer[1 << 16];
  while (true) {
    ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 || content.size() + static_cast<std::size_t>(got) > limit) {
      std::string reason = got < 0 ? errno_text() : fmt::format("larger than {} bytes", limit);
      ::close(fd);
      fail(kind, "{}: cannot be read: {}", path.string(), reason);
    }
    if (got == 0) break;
    content.append(buffer, static_cast<std::size_t>(got));
  }
  ::close(fd);
  return content;
}

void make_folder(const fs::path& folder) {
  std::error_code code;
  fs::create_directories(folder, code);
  check(!code && fs::is_directory(folder), ErrorKind::kFailure,
        "{}: the folder cannot be created: {}. Choose a writable place.", folder.string(),
        code ? code.message() : "a file with that name exists");
}

MappedFile::MappedFile(const fs::path& path, ErrorKind kind) {
  struct stat info {};
  int fd = open_for_reading(path, kind, info);
  size_ = static_cast<std::size_t>(info.st_size);
  if (size_ > 0) {
    void* map = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
    std::string reason = errno_text();
    ::close(fd);
    check(map != MAP_FAILED, kind, "{}: cannot be mapped: {}", path.string(), reason);
    data_ = static_cast<const std::uint8_t*>(map);
  } else {
    ::close(fd);
  }
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::uint8_t*>(data_), size_);
}

}  // namespace nmrf
