// Reading whole files and replacing files atomically.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "nmrf/error.h"

namespace nmrf {

// A file under a temporary name in the target's folder; commit() renames it over the target, the
// destructor of an uncommitted one removes it. A killed run leaves the old file or the new one.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path target);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, std::size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  // Flushes to the disk and renames. Throws (and removes the temporary) when the disk is full.
  void commit();
  // The temporary's path, for writers that insist on opening a file by name.
  const std::filesystem::path& temporary() const { return temporary_; }

 private:
  std::filesystem::path target_;
  std::filesystem::path temporary_;
  int fd_ = -1;
};

// Writes `text` to `path` through an AtomicFile.
void write_file(const std::filesystem::path& path, std::string_view text);
void write_file(const std::filesystem::path& path, const std::vector<std::uint8_t>& bytes);

// The whole file. Throws an Error of `kind` naming the path when it is missing, unreadable or
// larger than `limit` bytes.
std::string read_file(const std::filesystem::path& path, ErrorKind kind = ErrorKind::kInput,
                      std::uint64_t limit = std::uint64_t{1} << 32);

// Creates `folder` and its parents; throws naming it when that fails.
void make_folder(const std::filesystem::path& folder);

// A read-only memory map of a whole file; an empty file maps to an empty span.
class MappedFile {
 public:
  MappedFile(const std::filesystem::path& path, ErrorKind kind);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  const std::uint8_t* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  const std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace nmrf
