// What every reader of weight files returns: named arrays that point into the mapped file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weights/file_bytes.h"

namespace nmrf {

enum class DType { kF64, kF32, kF16, kBF16, kI64, kI32, kI16, kI8, kU8, kBool };

// The name that safetensors uses: "F32", "BOOL".
const char* dtype_name(DType dtype);
std::optional<DType> dtype_from_name(std::string_view name);
// Bytes of one element.
std::size_t dtype_size(DType dtype);
bool is_floating(DType dtype);

// The bytes that an array of this shape takes, or nothing when a dimension is negative or the
// product does not fit.
std::optional<std::uint64_t> bytes_of(DType dtype, std::span<const std::int64_t> shape);

// "[128, 256, 3, 3]" for messages.
std::string shape_text(std::span<const std::int64_t> shape);

// One array: row-major, little-endian, not necessarily aligned (copy it out with memcpy).
// data.size() is bytes_of(dtype, shape); a scalar has an empty shape and one element.
struct StoredTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  std::span<const std::uint8_t> data;

  std::int64_t elements() const {
    return static_cast<std::int64_t>(data.size() / dtype_size(dtype));
  }
};

struct TensorFile {
  std::string format;                           // "pth" or "safetensors"
  std::vector<StoredTensor> tensors;            // in the file's order; names are unique
  std::map<std::string, std::string> metadata;  // safetensors' __metadata__; empty for pth
  std::vector<std::string> skipped;             // pth: what else the file held ("optimizer")
  std::shared_ptr<const void> storage;          // keeps every `data` above alive

  // The tensor of that name or null.
  const StoredTensor* find(std::string_view name) const;
};

// Reads a .pth or .safetensors file, told apart by its content. Whatever is wrong with the file is
// an Error of kind kModel, raised before anything is allocated from the numbers in it.
TensorFile read_tensor_file(const std::filesystem::path& path);
TensorFile read_tensor_file(const FileBytes& file);

// The elements of a tensor of any floating type as float32, in row-major order; an integer tensor
// is an Error that names it.
std::vector<float> to_floats(const StoredTensor& tensor);

// The bits of the nearest 16-bit float, to even on a tie.
std::uint16_t to_half(float value);

}  // namespace nmrf
