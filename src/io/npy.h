// NumPy's array files, for disparity maps and for tensors to compare with.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <type_traits>
#include <vector>

#include "core/check.h"

namespace nmrf {

enum class NpyType { kFloat32, kFloat64, kInt32, kInt64, kUint8 };

// NumPy's own word for it: "<f4".
const char* npy_type_name(NpyType type);
std::size_t npy_type_bytes(NpyType type);

template <class T>
constexpr NpyType npy_type_of() {
  if constexpr (std::is_same_v<T, float>)
    return NpyType::kFloat32;
  else if constexpr (std::is_same_v<T, double>)
    return NpyType::kFloat64;
  else if constexpr (std::is_same_v<T, std::int32_t>)
    return NpyType::kInt32;
  else if constexpr (std::is_same_v<T, std::int64_t>)
    return NpyType::kInt64;
  else {
    static_assert(std::is_same_v<T, std::uint8_t>, "no such npy type");
    return NpyType::kUint8;
  }
}

// An array of any number of dimensions in row-major (C) order. An empty shape is a single number.
struct NpyArray {
  NpyType type = NpyType::kFloat32;
  std::vector<std::int64_t> shape;
  std::vector<std::uint8_t> bytes;
  std::string source;  // the file, for messages

  std::int64_t count() const;

  // The values, when they are of type T; an Error(kInput) otherwise.
  template <class T>
  const T* data() const {
    check(type == npy_type_of<T>(), ErrorKind::kInput, "{}: holds '{}', expected '{}'.", source,
          npy_type_name(type), npy_type_name(npy_type_of<T>()));
    return reinterpret_cast<const T*>(bytes.data());
  }
};

// "(3, 4)", as NumPy prints it.
std::string npy_shape_text(const std::vector<std::int64_t>& shape);

// Reads '<f4', '<f8', '<i4', '<i8' and '|u1' in C order; format versions 1 to 3. Anything else, and
// a file whose length does not fit its header, is an Error(kInput).
NpyArray read_npy(const std::filesystem::path& path);

// Writes format version 1, atomically. `data` holds the product of `shape` values in C order.
void write_npy(const std::filesystem::path& path, const std::vector<std::int64_t>& shape,
               const float* data);
void write_npy(const std::filesystem::path& path, const std::vector<std::int64_t>& shape,
               const std::uint8_t* data);
void write_npy(const std::filesystem::path& path, const std::vector<std::int64_t>& shape,
               const std::int32_t* data);

}  // namespace nmrf
