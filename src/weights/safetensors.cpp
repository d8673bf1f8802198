#include "weights/safetensors.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "core/check.h"
#include "core/file.h"
#include "weights/zip.h"

namespace nmrf {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMaxHeader = 100'000'000;
constexpr std::uint64_t kLengthBytes = 8;
constexpr const char* kMetadata = "__metadata__";
constexpr const char* kChecksum = "nmrf_crc32";
constexpr std::string_view kNoChecksum = "00000000";

// Where the digits of the checksum stand in a header, or npos. Within a JSON string the quotes
// would be escaped, so this finds the key and nothing else.
std::size_t checksum_place(std::string_view header) {
  const std::string key = std::string("\"") + kChecksum + "\":\"";
  const std::size_t at = header.find(key);
  return at == std::string_view::npos ? at : at + key.size();
}

std::span<const std::uint8_t> bytes_in(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// One entry of the header as it is written, before it is checked against the file.
struct Entry {
  std::string name, dtype;
  std::vector<std::int64_t> shape, offsets;
  bool has_dtype = false, has_shape = false, has_offsets = false;
};

// Takes the header's events from the JSON parser. A tree would keep only the last of two equal
// keys; events show both. Any shape of JSON other than the format's stops the parser.
class Header : public json::json_sax_t {
 public:
  std::vector<Entry> entries;
  std::map<std::string, std::string> metadata;
  std::string problem;

  bool start_object(std::size_t) override {
    switch (place_) {
      case Place::kOutside:
        place_ = Place::kTop;
        return true;
      case Place::kName:
        place_ = name_ == kMetadata ? Place::kMetadata : Place::kEntry;
        if (place_ == Place::kEntry) entries.emplace_back().name = name_;
        return true;
      default:
        return stop("an object");
    }
  }

  bool end_object() override {
    if (place_ == Place::kTop) {
      place_ = Place::kDone;
      return true;
    }
    if (place_ == Place::kEntry) {
      const Entry& entry = entries.back();
      if (!entry.has_dtype || !entry.has_shape || !entry.has_offsets)
        return fault("'" + printable(entry.name) +
                     "' needs a \"dtype\", a \"shape\" and \"data_offsets\"");
    }
    place_ = Place::kTop;
    return true;
  }

  bool key(std::string& text) override {
    if (place_ == Place::kTop) {
      if (!names_.insert(text).second)
        return fault("the name '" + printable(text) + "' stands there twice");
      name_ = text;
      place_ = Place::kName;
      return true;
    }
    if (place_ == Place::kMetadata) {
      metadata_key_ = text;
      place_ = Place::kMetadataValue;
      if (!metadata.emplace(text, "").second)
        return fault("the key '" + printable(text) + "' of the metadata stands there twice");
      return true;
    }
    Entry& entry = entries.back();
    bool* seen = nullptr;
    if (text == "dtype") {
      seen = &entry.has_dtype;
      place_ = Place::kDType;
    } else if (text == "shape") {
      seen = &entry.has_shape;
      place_ = Place::kShape;
      list_ = &Entry::shape;
    } else if (text == "data_offsets") {
      seen = &entry.has_offsets;
      place_ = Place::kOffsets;
      list_ = &Entry::offsets;
    }
    if (!seen || *seen)
      return fault("'" + printable(entry.name) + "' has an unknown or repeated key '" +
                   printable(text) + "'");
    *seen = true;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::kShape && place_ != Place::kOffsets) return stop("a list");
    place_ = Place::kNumbers;
    return true;
  }
  bool end_array() override {
    place_ = Place::kEntry;
    return true;
  }

  bool string(std::string& text) override {
    if (place_ == Place::kDType) {
      entries.back().dtype = text;
      place_ = Place::kEntry;
      return true;
    }
    if (place_ == Place::kMetadataValue) {
      metadata[metadata_key_] = text;
      place_ = Place::kMetadata;
      return true;
    }
    return stop("a string");
  }

  bool number_unsigned(std::uint64_t value) override {
    if (place_ != Place::kNumbers) return stop("a number");
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return fault("the number " + std::to_string(value) + " is too large");
    (entries.back().*list_).push_back(static_cast<std::int64_t>(value));
    return true;
  }
  bool number_integer(std::int64_t value) override {
    return fault("the number " + std::to_string(value) + " is negative");
  }
  bool number_float(double, const std::string& text) override {
    return fault("the number " + printable(text) + " is not whole or too large");
  }
  bool null() override { return stop("null"); }
  bool boolean(bool) override { return stop("a boolean"); }
  bool binary(json::binary_t&) override { return stop("binary data"); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return fault("it is not JSON at byte " + std::to_string(position));
  }

 private:
  // Where in the header the parser stands: what the next value belongs to.
  enum class Place {
    kOutside,
    kTop,            // between entries
    kName,           // the value of a name
    kMetadata,       // between keys of the metadata
    kMetadataValue,  // the value of such a key
    kEntry,          // between keys of an entry
    kDType,
    kShape,
    kOffsets,
    kNumbers,  // in the list of a shape or of offsets
    kDone
  };

  bool fault(std::string text) {
    problem = std::move(text);
    return false;
  }
  bool stop(const char* found) {
    return fault(std::string("it has ") + found + " where none belongs" +
                 (name_.empty() ? "" : " (in '" + printable(name_) + "')"));
  }

  Place place_ = Place::kOutside;
  std::string name_, metadata_key_;
  std::vector<std::int64_t> Entry::*list_ = nullptr;
  std::unordered_set<std::string> names_;
};

template <class... Args>
[[noreturn]] void broken(const std::string& name, fmt::format_string<Args...> format,
                         Args&&... args) {
  fail(ErrorKind::kModel,
       "{}: is not a sound safetensors file: {}. Download or copy it again, or convert it anew.",
       name, fmt::format(format, std::forward<Args>(args)...));
}

// Checks an entry by itself; `arrays` are the bytes after the header.
StoredTensor checked(const std::string& file, const Entry& entry,
                     std::span<const std::uint8_t> arrays) {
  const std::string shown = printable(entry.name);
  const auto dtype = dtype_from_name(entry.dtype);
  check(dtype.has_value(), ErrorKind::kModel,
        "{}: the tensor '{}' is of the type '{}', which is not read here; expected F64, F32, F16, "
        "BF16, I64, I32, I16, I8, U8 or BOOL",
        file, shown, printable(entry.dtype));
  if (entry.offsets.size() != 2 || entry.offsets[0] > entry.offsets[1] ||
      static_cast<std::uint64_t>(entry.offsets[1]) > arrays.size())
    broken(file, "the offsets of '{}' do not lie within the {} bytes after the header", shown,
           arrays.size());
  const auto begin = static_cast<std::uint64_t>(entry.offsets[0]);
  const auto bytes = static_cast<std::uint64_t>(entry.offsets[1]) - begin;
  const auto expected = bytes_of(*dtype, entry.shape);
  if (expected != bytes)
    broken(file, "'{}' of shape {} and type {} has {} bytes", shown, shape_text(entry.shape),
           entry.dtype, bytes);
  return {entry.name, *dtype, entry.shape, arrays.subspan(begin, bytes)};
}

// No byte of the arrays belongs to two tensors or to none.
void check_cover(const std::string& file, std::vector<Entry>& entries, std::uint64_t size) {
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.offsets < b.offsets; });
  std::uint64_t end = 0;
  for (const Entry& entry : entries) {
    const auto begin = static_cast<std::uint64_t>(entry.offsets[0]);
    if (begin != end)
      broken(file, "'{}' starts at byte {} and {} was expected: {}", printable(entry.name), begin,
             end, begin < end ? "arrays overlap" : "there is a hole");
    end = static_cast<std::uint64_t>(entry.offsets[1]);
  }
  if (end != size) broken(file, "{} bytes follow the header and the arrays take {}", size, end);
}

// The file's bytes are those that were written: their CRC-32, taken with zeros for the digits of
// the checksum itself. Takes the checksum out of the metadata; files of other programs have none.
void check_bytes(const FileBytes& file, std::string_view header,
                 std::map<std::string, std::string>& metadata) {
  const auto stored = metadata.extract(kChecksum);
  if (stored.empty()) return;
  const std::size_t at = checksum_place(header);
  std::string sum;
  if (at != std::string_view::npos && stored.mapped().size() == kNoChecksum.size()) {
    const auto digits = kLengthBytes + at, end = digits + kNoChecksum.size();
    std::uint32_t crc = crc32(file.bytes.first(digits));
    crc = crc32(bytes_in(kNoChecksum), crc);
    sum = fmt::format("{:08x}", crc32(file.bytes.subspan(end), crc));
  }
  check(sum == stored.mapped(), ErrorKind::kModel,
        "{}: is damaged: its bytes do not give the checksum that was written with them. Copy or "
        "download it again. (If another program changed it on purpose, it should drop the key "
        "'{}' from the metadata.)",
        file.name, kChecksum);
}

}  // namespace

TensorFile read_safetensors(const FileBytes& file) {
  const std::uint64_t size = file.bytes.size();
  if (size < kLengthBytes) broken(file.name, "{} bytes are too few", size);
  const auto length = load_le<std::uint64_t>(file.bytes.data());
  if (length > kMaxHeader) broken(file.name, "its header of {} bytes is over 100 MB", length);
  if (length > size - kLengthBytes)
    broken(file.name, "its header of {} bytes does not fit into {} (cut short?)", length, size);
  const auto text = file.bytes.subspan(kLengthBytes, length);
  const auto arrays = file.bytes.subspan(kLengthBytes + length);
  if (text.empty() || text[0] != '{') broken(file.name, "its header does not start with '{{'");

  Header header;
  if (!json::sax_parse(text.begin(), text.end(), &header))
    broken(file.name, "in its header, {}", header.problem);

  TensorFile result;
  result.format = "safetensors";
  result.metadata = std::move(header.metadata);
  check_bytes(file, {reinterpret_cast<const char*>(text.data()), text.size()}, result.metadata);
  result.storage = file.owner;
  result.tensors.reserve(header.entries.size());
  for (const Entry& entry : header.entries)
    result.tensors.push_back(checked(file.name, entry, arrays));
  check_cover(file.name, header.entries, arrays.size());
  return result;
}

void write_safetensors(const std::filesystem::path& path, std::span<const StoredTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<const StoredTensor*> order;
  for (const StoredTensor& tensor : tensors) {
    check(bytes_of(tensor.dtype, tensor.shape) == tensor.data.size(), ErrorKind::kModel,
          "{}: the tensor '{}' of shape {} and type {} has {} bytes", path.string(),
          printable(tensor.name), shape_text(tensor.shape), dtype_name(tensor.dtype),
          tensor.data.size());
    order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(), [](const StoredTensor* a, const StoredTensor* b) {
    const std::size_t wide_a = dtype_size(a->dtype), wide_b = dtype_size(b->dtype);
    return wide_a != wide_b ? wide_a > wide_b : a->name < b->name;
  });

  json header = json::object();  // keeps its keys sorted
  header[kMetadata] = metadata;
  header[kMetadata][kChecksum] = kNoChecksum;
  std::uint64_t offset = 0;
  for (const StoredTensor* tensor : order) {
    check(tensor->name != kMetadata && !header.contains(tensor->name), ErrorKind::kModel,
          "{}: the tensor name '{}' is used twice or reserved", path.string(),
          printable(tensor->name));
    const std::uint64_t end = offset + tensor->data.size();
    header[tensor->name] = {{"dtype", dtype_name(tensor->dtype)},
                            {"shape", tensor->shape},
                            {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const json::exception&) {
    fail(ErrorKind::kModel, "{}: a tensor name or a metadata text is not UTF-8", path.string());
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  check(text.size() <= kMaxHeader, ErrorKind::kModel,
        "{}: the header of {} bytes would be over 100 MB", path.string(), text.size());

  const std::uint64_t length = text.size();
  std::uint32_t crc = crc32({reinterpret_cast<const std::uint8_t*>(&length), sizeof length});
  crc = crc32(bytes_in(text), crc);
  for (const StoredTensor* tensor : order) crc = crc32(tensor->data, crc);
  text.replace(checksum_place(text), kNoChecksum.size(), fmt::format("{:08x}", crc));

  AtomicFile file(path);
  file.write(&length, sizeof length);
  file.write(text);
  for (const StoredTensor* tensor : order) file.write(tensor->data.data(), tensor->data.size());
  file.commit();
}

}  // namespace nmrf
