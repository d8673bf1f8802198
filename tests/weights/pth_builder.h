// Makes small pickles, zip archives and .pth files byte by byte, sound and hostile ones.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "weights/file_bytes.h"

namespace nmrf::test {

// Expects that an error message holds `part`.
void expect_contains(const std::string& text, const std::string& part);

// A number as little-endian bytes.
template <class T>
std::string le(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

// The content in a heap block of exactly its size, so that the sanitizer sees a read beyond it.
FileBytes file_of(std::string_view content, std::string name = "made.pth");

// Appends opcodes. Strings and numbers are written as PyTorch writes them.
struct PickleBuilder {
  std::string bytes;

  PickleBuilder& raw(std::string_view opcodes);
  PickleBuilder& proto(int version = 2);
  PickleBuilder& global(const std::string& module, const std::string& name);
  PickleBuilder& text(const std::string& content);
  PickleBuilder& integer(std::int64_t value);
  PickleBuilder& integers(const std::vector<std::int64_t>& values);  // as a tuple
};

struct MadeTensor {
  std::string name = "w";
  std::vector<std::int64_t> shape = {2, 3};
  std::vector<std::int64_t> strides = {3, 1};
  std::int64_t offset = 0;
  std::string storage = "FloatStorage";
  std::string key = "0";
  std::int64_t storage_elements = 6;
  bool parameter = false;
};

// The opcodes that leave the tensor on the stack.
void put_tensor(PickleBuilder& pickle, const MadeTensor& tensor);
// An OrderedDict of the tensors on the stack.
void put_state_dict(PickleBuilder& pickle, const std::vector<MadeTensor>& tensors);
// A whole pickle: the state dict itself or, with a key, {key: state dict}.
std::string state_dict_pickle(const std::vector<MadeTensor>& tensors, const std::string& key = "");

struct MadeEntry {
  std::string name, content;
  std::uint16_t method = 0;
  std::uint16_t flags = 0;
  bool wrong_crc = false;
};
struct ZipStyle {
  bool descriptors = false;  // sizes only in the directory and behind the data
  bool zip64_end = false;    // a zip64 end record besides the short one, as PyTorch writes
  bool zip64_sizes = false;  // sizes and offsets in extra fields only, the short end record full
  std::string comment = {};
};
std::string make_zip(const std::vector<MadeEntry>& entries, const ZipStyle& style = {});

// archive/data.pkl, archive/data/<i> for each storage, archive/version.
std::string make_pth(const std::string& pickle, const std::vector<std::string>& storages,
                     const std::vector<MadeEntry>& more = {});

// The floats as a storage.
std::string floats(const std::vector<float>& values);

}  // namespace nmrf::test
