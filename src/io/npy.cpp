#include "io/npy.h"

#include <fmt/ranges.h>

#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "core/file.h"

namespace nmrf {
namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "the files are little-endian");

namespace {

struct TypeRow {
  NpyType type;
  const char* name;
  std::size_t bytes;
};
constexpr std::array<TypeRow, 5> kTypes = {{{NpyType::kFloat32, "<f4", 4},
                                            {NpyType::kFloat64, "<f8", 8},
                                            {NpyType::kInt32, "<i4", 4},
                                            {NpyType::kInt64, "<i8", 8},
                                            {NpyType::kUint8, "|u1", 1}}};

const TypeRow& row_of(NpyType type) {
  for (const auto& row : kTypes)
    if (row.type == type) return row;
  fail(ErrorKind::kFailure, "unknown npy type {}", static_cast<int>(type));
}

// Reads the header: a Python dict of three entries, as NumPy writes it.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  void parse(NpyArray& array) {
    bool have_type = false, have_order = false, have_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr") {
        array.type = type();
        have_type = true;
      } else if (key == "fortran_order") {
        const bool fortran = boolean();
        check(!fortran, ErrorKind::kInput,
              "{}: is stored column by column (fortran_order). Save it from "
              "numpy.ascontiguousarray(x).",
              name_);
        have_order = true;
      } else if (key == "shape") {
        array.shape = shape();
        have_shape = true;
      } else {
        damaged();
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!have_type || !have_order || !have_shape) damaged();
  }

 private:
  [[noreturn]] void damaged() const {
    fail(ErrorKind::kInput,
         "{}: the npy header is damaged: expected descr, fortran_order and shape, as numpy.save "
         "writes them.",
         name_);
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }

  bool accept(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) damaged();
  }

  std::string_view quoted() {
    skip_blanks();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') damaged();
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) damaged();
    const std::string_view word = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return word;
  }

  NpyType type() {
    skip_blanks();
    check(at_ >= text_.size() || text_[at_] != '[', ErrorKind::kInput,
          "{}: holds records of several fields; expected one plain array of '<f4', '<f8', '<i4', "
          "'<i8' or '|u1'.",
          name_);
    const std::string_view word = quoted();
    for (const auto& row : kTypes)
      if (word == row.name) return row.type;
    fail(ErrorKind::kInput,
         "{}: holds values of type '{}'; only '<f4', '<f8', '<i4', '<i8' and '|u1' are read. Save "
         "it "
         "with x.astype('float32').",
         name_, word);
  }

  bool boolean() {
    skip_blanks();
    for (bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    }
    damaged();
  }

  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> sizes;
    expect('(');
    while (!accept(')')) {
      skip_blanks();
      std::int64_t size = 0;
      const char* begin = text_.data() + at_;
      auto [end, code] = std::from_chars(begin, text_.data() + text_.size(), size);
      if (code != std::errc() || size < 0 || sizes.size() >= 32) damaged();
      at_ += static_cast<std::size_t>(end - begin);
      sizes.push_back(size);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return sizes;
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0;
};

// The product of the sizes; nothing when it does not fit 64 bits.
std::optional<std::int64_t> product(const std::vector<std::int64_t>& shape) {
  std::int64_t all = 1;
  for (std::int64_t size : shape)
    if (size == 0) return 0;
  for (std::int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(all, size, &all)) return std::nullopt;
  return all;
}

void write_any(const fs::path& path, const std::vector<std::int64_t>& shape, NpyType type,
               const void* data) {
  const auto count = product(shape);
  check(count.has_value(), ErrorKind::kUsage, "{}: {} is no shape of an array.", path.string(),
        npy_shape_text(shape));
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}",
                                   npy_type_name(type), npy_shape_text(shape));
  // Ten bytes precede the header; the values begin at a multiple of 64.
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  AtomicFile file(path);
  const auto length = static_cast<std::uint16_t>(header.size());
  file.write(std::string_view("\x93NUMPY\x01\x00", 8));
  file.write(&length, sizeof length);
  file.write(header);
  file.write(data, static_cast<std::size_t>(*count) * npy_type_bytes(type));
  file.commit();
}

}  // namespace

const char* npy_type_name(NpyType type) { return row_of(type).name; }

std::size_t npy_type_bytes(NpyType type) { return row_of(type).bytes; }

std::int64_t NpyArray::count() const {
  return static_cast<std::int64_t>(bytes.size() / npy_type_bytes(type));
}

std::string npy_shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

NpyArray read_npy(const fs::path& path) {
  const std::string name = path.string();
  const MappedFile file(path, ErrorKind::kInput);
  const std::string_view content(reinterpret_cast<const char*>(file.data()), file.size());
  check(content.size() >= 10 && content.starts_with("\x93NUMPY"), ErrorKind::kInput,
        "{}: is not an npy file: expected it to begin with the mark that numpy.save writes.", name);
  const int version = static_cast<unsigned char>(content[6]);
  check(version >= 1 && version <= 3, ErrorKind::kInput,
        "{}: is of npy version {}; versions 1 to 3 are read.", name, version);
  const std::size_t start = version == 1 ? 10 : 12;
  std::uint32_t length = 0;
  check(content.size() >= start, ErrorKind::kInput, "{}: the npy header is truncated.", name);
  std::memcpy(&length, content.data() + 8, version == 1 ? 2 : 4);
  check(length <= content.size() - start, ErrorKind::kInput,
        "{}: the npy header is truncated: it should take {} bytes, the file has {}.", name, length,
        content.size() - start);

  NpyArray array;
  array.source = name;
  HeaderParser(content.substr(start, length), name).parse(array);
  const std::string_view values = content.substr(start + length);
  const auto count = product(array.shape);
  const std::size_t item = npy_type_bytes(array.type);
  check(count && static_cast<std::uint64_t>(*count) <= values.size() / item, ErrorKind::kInput,
        "{}: is truncated: a '{}' array of shape {} does not fit into the {} bytes of values. Copy "
        "or download the file again.",
        name, npy_type_name(array.type), npy_shape_text(array.shape), values.size());
  const std::size_t need = static_cast<std::size_t>(*count) * item;
  check(need == values.size(), ErrorKind::kInput,
        "{}: has {} bytes left over after a '{}' array of shape {}.", name, values.size() - need,
        npy_type_name(array.type), npy_shape_text(array.shape));
  array.bytes.assign(values.begin(), values.end());
  return array;
}

void write_npy(const fs::path& path, const std::vector<std::int64_t>& shape, const float* data) {
  write_any(path, shape, NpyType::kFloat32, data);
}

void write_npy(const fs::path& path, const std::vector<std::int64_t>& shape,
               const std::uint8_t* data) {
  write_any(path, shape, NpyType::kUint8, data);
}

void write_npy(const fs::path& path, const std::vector<std::int64_t>& shape,
               const std::int32_t* data) {
  write_any(path, shape, NpyType::kInt32, data);
}

}  // namespace nmrf
