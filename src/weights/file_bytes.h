// The bytes of a file kept alive by their owner, and helpers for reading untrusted binary formats.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace nmrf {

static_assert(std::endian::native == std::endian::little,
              "weight files are little-endian and are mapped without swapping");

// The content of one file. `name` stands in error messages; `bytes` live as long as `owner`.
struct FileBytes {
  std::string name;
  std::span<const std::uint8_t> bytes;
  std::shared_ptr<const void> owner;
};

// Maps a weight file; a missing or unreadable one is an Error of kind kModel.
FileBytes map_weight_file(const std::filesystem::path& path);

// A little-endian number at any alignment. The caller has checked that sizeof(T) bytes are there.
template <class T>
T load_le(const std::uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// a·b of sizes and counts that come from a file: false when it does not fit.
inline bool multiply_fits(std::uint64_t a, std::uint64_t b, std::uint64_t& product) {
  return !__builtin_mul_overflow(a, b, &product);
}

// Text from a file made fit for an error message: control characters and bytes that are not ASCII
// are written as \xHH (a file must not be able to drive the reader's terminal), long text is cut.
std::string printable(std::string_view text);

}  // namespace nmrf
