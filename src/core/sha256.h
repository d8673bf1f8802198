// SHA-256 (FIPS 180-4), to name a weight file by its content.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "nmrf/error.h"

namespace nmrf {

// Feed with update() any number of times, then take the digest once.
class Sha256 {
 public:
  Sha256();
  void update(const void* data, std::size_t bytes);
  void update(std::string_view text) { update(text.data(), text.size()); }
  // 64 lower-case hexadecimal digits of everything fed so far. The object is spent afterwards.
  std::string hex();

 private:
  void block(const std::uint8_t* data);

  std::array<std::uint32_t, 8> state_;
  std::array<std::uint8_t, 64> pending_{};
  std::size_t pending_bytes_ = 0;
  std::uint64_t total_bytes_ = 0;
};

// The digest of a whole file. A missing or unreadable file is an Error of `kind`.
std::string sha256_of_file(const std::filesystem::path& path, ErrorKind kind = ErrorKind::kModel);

}  // namespace nmrf
