// Zip archives with stored (uncompressed) entries: a reader for weight files, which trusts nothing,
// and a writer for benchmark submissions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/check.h"
#include "core/file.h"
#include "weights/file_bytes.h"

namespace nmrf {

// The CRC-32 of zip, PNG and Ethernet. Pass an earlier result as `start` to go on from there.
std::uint32_t crc32(std::span<const std::uint8_t> bytes, std::uint32_t start = 0);

struct ZipEntry {
  std::string name;
  std::span<const std::uint8_t> raw;  // as stored in the archive: compressed when method is not 0
  std::uint32_t crc = 0;
  std::uint16_t method = 0;
  bool encrypted = false;
};

// Reads the directory of an archive, zip64 included. Every offset and size is checked against the
// file, entries must not overlap or share a name, and what the directory says of an entry must
// agree with the entry's own header. Errors are of kind kModel.
class ZipReader {
 public:
  explicit ZipReader(FileBytes file);

  const std::vector<ZipEntry>& entries() const { return entries_; }
  const ZipEntry* find(const std::string& name) const;
  // The content, without a copy. Refuses a compressed or encrypted entry by name, and one whose
  // checksum does not match (a checksum of 0 means that the writer did not compute it).
  std::span<const std::uint8_t> read(const ZipEntry& entry) const;

 private:
  struct Directory {
    std::uint64_t offset = 0, size = 0, entries = 0;
  };
  Directory locate() const;
  ZipEntry parse_entry(const std::uint8_t* header, std::uint64_t room, std::uint64_t directory,
                       std::uint64_t& begin, std::uint64_t& end) const;
  template <class... Args>
  [[noreturn]] void broken(fmt::format_string<Args...> format, Args&&... args) const;

  FileBytes file_;
  std::vector<ZipEntry> entries_;
  std::unordered_map<std::string, std::size_t> index_;
};

// Writes an archive of stored entries, entry by entry, under a temporary name until commit(). The
// same entries give the same bytes: all carry the date 1980-01-01. Limits of plain zip: below 4 GB
// and 65535 entries; going beyond is an Error (kFailure) and leaves no file.
class ZipWriter {
 public:
  explicit ZipWriter(const std::filesystem::path& path);
  // `name` is a relative path with forward slashes, used once.
  void add(const std::string& name, std::span<const std::uint8_t> bytes);
  void add(const std::string& name, std::string_view text);
  void commit();

 private:
  std::string path_;
  AtomicFile file_;
  std::string directory_;
  std::set<std::string> names_;
  std::uint64_t offset_ = 0;
};

}  // namespace nmrf
