#include "weights/pth_builder.h"

#include <gtest/gtest.h>

namespace nmrf::test {
namespace {

// Bit by bit, to be independent of the tables in the library.
std::uint32_t slow_crc32(std::string_view bytes) {
  std::uint32_t crc = 0xffffffff;
  for (char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
  }
  return ~crc;
}

template <class T>
std::string le_as(std::uint64_t value) {
  return le(static_cast<T>(value));
}
std::string le16(std::uint64_t value) { return le_as<std::uint16_t>(value); }
std::string le32(std::uint64_t value) { return le_as<std::uint32_t>(value); }
std::string le64(std::uint64_t value) { return le_as<std::uint64_t>(value); }

}  // namespace

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

FileBytes file_of(std::string_view content, std::string name) {
  auto block = std::make_shared<std::vector<std::uint8_t>>(content.begin(), content.end());
  block->shrink_to_fit();
  return {std::move(name), *block, block};
}

PickleBuilder& PickleBuilder::raw(std::string_view opcodes) {
  bytes += opcodes;
  return *this;
}
PickleBuilder& PickleBuilder::proto(int version) {
  bytes += '\x80';
  bytes += static_cast<char>(version);
  return *this;
}
PickleBuilder& PickleBuilder::global(const std::string& module, const std::string& name) {
  bytes += "c" + module + "\n" + name + "\n";
  return *this;
}
PickleBuilder& PickleBuilder::text(const std::string& content) {
  bytes += "X" + le32(content.size()) + content;
  return *this;
}
PickleBuilder& PickleBuilder::integer(std::int64_t value) {
  if (value >= 0 && value < 256)
    bytes += std::string("K") + static_cast<char>(value);
  else if (value == static_cast<std::int32_t>(value))
    bytes += "J" + le(static_cast<std::int32_t>(value));
  else
    bytes += "\x8a\x08" + le(value);
  return *this;
}
PickleBuilder& PickleBuilder::integers(const std::vector<std::int64_t>& values) {
  bytes += "(";
  for (std::int64_t value : values) integer(value);
  bytes += "t";
  return *this;
}

void put_tensor(PickleBuilder& pickle, const MadeTensor& tensor) {
  if (tensor.parameter) pickle.global("torch._utils", "_rebuild_parameter").raw("(");
  pickle.global("torch._utils", "_rebuild_tensor_v2").raw("((");
  pickle.text("storage").global("torch", tensor.storage).text(tensor.key).text("cpu");
  pickle.integer(tensor.storage_elements).raw("tQ");
  pickle.integer(tensor.offset).integers(tensor.shape).integers(tensor.strides);
  pickle.raw("\x89").global("collections", "OrderedDict").raw(")RtR");
  if (tensor.parameter) pickle.raw("\x88").global("collections", "OrderedDict").raw(")RtR");
}

void put_state_dict(PickleBuilder& pickle, const std::vector<MadeTensor>& tensors) {
  pickle.global("collections", "OrderedDict").raw(")R(");
  for (const MadeTensor& tensor : tensors) {
    pickle.text(tensor.name);
    put_tensor(pickle, tensor);
  }
  pickle.raw("u");
  // The attribute that PyTorch hangs on every state dict.
  pickle.raw("}").text("_metadata").global("collections", "OrderedDict").raw(")Rsb");
}

std::string state_dict_pickle(const std::vector<MadeTensor>& tensors, const std::string& key) {
  PickleBuilder pickle;
  pickle.proto();
  if (!key.empty()) pickle.raw("}").text(key);
  put_state_dict(pickle, tensors);
  if (!key.empty()) pickle.raw("s");
  return pickle.raw(".").bytes;
}

std::string make_zip(const std::vector<MadeEntry>& entries, const ZipStyle& style) {
  std::string body, directory;
  for (const MadeEntry& entry : entries) {
    const std::size_t offset = body.size();
    const std::size_t size = entry.content.size();
    const std::uint32_t crc = slow_crc32(entry.content) ^ (entry.wrong_crc ? 0x5a : 0);
    const std::uint16_t flags = entry.flags | (style.descriptors ? 8 : 0);
    const bool blank = style.descriptors;
    // PyTorch pads the extra field so that the data are aligned.
    const std::string padding = "FB" + le16(3) + "ZZZ";
    body += "PK\3\4" + le16(20) + le16(flags) + le16(entry.method) + le32(0) +
            le32(blank ? 0 : crc) + le32(blank ? 0 : size) + le32(blank ? 0 : size) +
            le16(entry.name.size()) + le16(padding.size()) + entry.name + padding + entry.content;
    if (style.descriptors) body += "PK\7\x8" + le32(crc) + le32(size) + le32(size);

    const bool wide = style.zip64_sizes;
    const std::string extra =
        wide ? "xy" + le16(1) + "z" + le16(1) + le16(24) + le64(size) + le64(size) + le64(offset)
             : "";
    directory += "PK\1\2" + le16(20) + le16(20) + le16(flags) + le16(entry.method) + le32(0) +
                 le32(crc) + le32(wide ? 0xffffffff : size) + le32(wide ? 0xffffffff : size) +
                 le16(entry.name.size()) + le16(extra.size()) + le16(0) + le16(0) + le16(0) +
                 le32(0) + le32(wide ? 0xffffffff : offset) + entry.name + extra;
  }
  std::string zip = body + directory;
  const bool wide_end = style.zip64_end || style.zip64_sizes;
  if (wide_end) {
    const std::size_t at = zip.size();
    zip += "PK\6\6" + le64(44) + le16(45) + le16(45) + le32(0) + le32(0) + le64(entries.size()) +
           le64(entries.size()) + le64(directory.size()) + le64(body.size());
    zip += "PK\6\7" + le32(0) + le64(at) + le32(1);
  }
  const bool full = style.zip64_sizes;
  zip += "PK\5\6" + le16(0) + le16(0) + le16(full ? 0xffff : entries.size()) +
         le16(full ? 0xffff : entries.size()) + le32(full ? 0xffffffff : directory.size()) +
         le32(full ? 0xffffffff : body.size()) + le16(style.comment.size()) + style.comment;
  return zip;
}

std::string make_pth(const std::string& pickle, const std::vector<std::string>& storages,
                     const std::vector<MadeEntry>& more) {
  std::vector<MadeEntry> entries = {{"archive/data.pkl", pickle}};
  for (std::size_t i = 0; i < storages.size(); ++i)
    entries.push_back({"archive/data/" + std::to_string(i), storages[i]});
  entries.insert(entries.end(), more.begin(), more.end());
  entries.push_back({"archive/version", "3\n"});
  return make_zip(entries, {.descriptors = true, .zip64_end = true});
}

std::string floats(const std::vector<float>& values) {
  std::string bytes;
  for (float value : values) bytes += le(value);
  return bytes;
}

}  // namespace nmrf::test
