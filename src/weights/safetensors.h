// Reads and writes safetensors, the format of our own model files.
//
// Layout: the length N of the header as 8 bytes, N bytes of JSON
//   {"__metadata__": {"key": "text"}, "name": {"dtype": "F32", "shape": [2, 3],
//    "data_offsets": [begin, end]}, ...}
// padded with spaces, then the arrays, to which the offsets are relative.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "weights/tensor_file.h"

namespace nmrf {

// The tensors in the order of the header, pointing into the file. Every rule of the format is
// checked: the header's length, its JSON (no name or key twice), types, sizes against shapes, and
// that the arrays cover the rest of the file without holes or overlaps. A file written here
// carries a CRC-32 of itself in its metadata, which must agree. Errors: kModel.
TensorFile read_safetensors(const FileBytes& file);

// Writes the file atomically. The header is sorted by name and padded to 8 bytes, and arrays of
// wider elements come first, so each array is aligned to its element. The same tensors give the
// same bytes. A name used twice or data that do not fit the shape are an Error of kind kModel.
void write_safetensors(const std::filesystem::path& path, std::span<const StoredTensor> tensors,
                       const std::map<std::string, std::string>& metadata);

}  // namespace nmrf
