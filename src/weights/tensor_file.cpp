#include "weights/tensor_file.h"

#include <array>
#include <limits>

#include "core/check.h"
#include "core/numbers.h"
#include "weights/pth.h"
#include "weights/safetensors.h"

namespace nmrf {
namespace {

struct DTypeRow {
  DType dtype;
  const char* name;
  std::size_t size;
};
constexpr std::array<DTypeRow, 10> kDTypes = {{{DType::kF64, "F64", 8},
                                               {DType::kF32, "F32", 4},
                                               {DType::kF16, "F16", 2},
                                               {DType::kBF16, "BF16", 2},
                                               {DType::kI64, "I64", 8},
                                               {DType::kI32, "I32", 4},
                                               {DType::kI16, "I16", 2},
                                               {DType::kI8, "I8", 1},
                                               {DType::kU8, "U8", 1},
                                               {DType::kBool, "BOOL", 1}}};

const DTypeRow& row(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)]; }

bool starts_with(std::span<const std::uint8_t> bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

// IEEE binary16: a sign, 5 bits of exponent (bias 15), 10 of mantissa.
float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t{half} >> 15 << 31;
  const std::uint32_t exponent = half >> 10 & 31;
  const std::uint32_t mantissa = half & 1023;
  if (exponent == 0) {  // zero, or a subnormal: mantissa · 2^-24
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  if (exponent == 31)  // infinity or NaN
    return bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
  return bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

float bfloat16_to_float(std::uint16_t value) { return bit_cast<float>(std::uint32_t{value} << 16); }

template <class T, class Convert>
std::vector<float> convert(std::span<const std::uint8_t> data, Convert&& one) {
  std::vector<float> out(data.size() / sizeof(T));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = one(load_le<T>(&data[i * sizeof(T)]));
  return out;
}

}  // namespace

const char* dtype_name(DType dtype) { return row(dtype).name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const DTypeRow& candidate : kDTypes)
    if (name == candidate.name) return candidate.dtype;
  return std::nullopt;
}

std::size_t dtype_size(DType dtype) { return row(dtype).size; }

bool is_floating(DType dtype) {
  return dtype == DType::kF64 || dtype == DType::kF32 || dtype == DType::kF16 ||
         dtype == DType::kBF16;
}

std::optional<std::uint64_t> bytes_of(DType dtype, std::span<const std::int64_t> shape) {
  std::uint64_t bytes = dtype_size(dtype);
  for (std::int64_t dimension : shape)
    if (dimension < 0 || !multiply_fits(bytes, static_cast<std::uint64_t>(dimension), bytes))
      return std::nullopt;
  if (bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return std::nullopt;
  return bytes;
}

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

const StoredTensor* TensorFile::find(std::string_view name) const {
  for (const StoredTensor& tensor : tensors)
    if (tensor.name == name) return &tensor;
  return nullptr;
}

TensorFile read_tensor_file(const std::filesystem::path& path) {
  return read_tensor_file(map_weight_file(path));
}

TensorFile read_tensor_file(const FileBytes& file) {
  const auto& bytes = file.bytes;
  check(!bytes.empty(), ErrorKind::kModel, "{}: is empty. Download or copy the file again.",
        file.name);
  // A safetensors file begins with the length of its header, which may be any bytes: look behind it
  // first. Neither a zip archive nor a pickle of PyTorch has a brace there.
  if (bytes.size() > 8 && bytes[8] == '{') return read_safetensors(file);
  // The first 80 is the pickle opcode PROTO: PyTorch before 1.6 wrote pickles without an archive.
  if (starts_with(bytes, "PK") || bytes[0] == 0x80) return read_pth(file);
  check(!starts_with(bytes, "version https://git-lfs"), ErrorKind::kModel,
        "{}: is a Git LFS pointer, not the weights. Run 'git lfs pull' and try again.", file.name);
  check(bytes[0] != '<', ErrorKind::kModel,
        "{}: looks like a web page, not a weight file. The download went wrong: open the link in a "
        "browser and save the file itself.",
        file.name);
  fail(ErrorKind::kModel,
       "{}: is neither a PyTorch file (.pth, a zip archive) nor a safetensors file. Check that it "
       "is the weight file and that it was copied whole.",
       file.name);
}

std::vector<float> to_floats(const StoredTensor& tensor) {
  switch (tensor.dtype) {
    case DType::kF32: {
      std::vector<float> out(tensor.data.size() / sizeof(float));
      if (!out.empty()) std::memcpy(out.data(), tensor.data.data(), out.size() * sizeof(float));
      return out;
    }
    case DType::kF64:
      return convert<double>(tensor.data, [](double value) { return static_cast<float>(value); });
    case DType::kF16:
      return convert<std::uint16_t>(tensor.data, half_to_float);
    case DType::kBF16:
      return convert<std::uint16_t>(tensor.data, bfloat16_to_float);
    default:
      fail(ErrorKind::kModel, "the tensor '{}' is of type {}; floating-point numbers were expected",
           printable(tensor.name), dtype_name(tensor.dtype));
  }
}

std::uint16_t to_half(float value) {
  const auto bits = bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
  const std::uint32_t rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);   // NaN
  if (rest >= 0x47800000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // beyond the range
  if (rest < 0x38800000u) {  // subnormal: the addition rounds
    const float shifted = bit_cast<float>(rest) + 0.5f;
    return static_cast<std::uint16_t>(sign | (bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
  }
  const std::uint32_t odd = rest >> 13 & 1u;
  return static_cast<std::uint16_t>(sign | (rest + 0xc8000000u + 0xfffu + odd) >> 13);
}

}  // namespace nmrf
