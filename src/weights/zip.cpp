#include "weights/zip.h"

#include <algorithm>
#include <array>
#include <utility>

namespace nmrf {
namespace {

constexpr std::uint32_t kLocalHeader = 0x04034b50;
constexpr std::uint32_t kCentralHeader = 0x02014b50;
constexpr std::uint32_t kEnd = 0x06054b50;
constexpr std::uint32_t kEnd64 = 0x06064b50;
constexpr std::uint32_t kEnd64Locator = 0x07064b50;
constexpr std::uint64_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22;
constexpr std::uint64_t kEnd64Bytes = 56, kLocatorBytes = 20;
constexpr std::uint64_t kFull16 = 0xffff, kFull32 = 0xffffffff;
constexpr std::uint16_t kEncryptedFlag = 1, kUtf8Flag = 1 << 11;

// Eight tables, so that the checksum takes eight bytes a step.
constexpr auto make_crc_tables() {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? 0xedb88320u : 0);
    tables[0][byte] = value;
  }
  for (int level = 1; level < 8; ++level)
    for (int byte = 0; byte < 256; ++byte) {
      std::uint32_t before = tables[level - 1][byte];
      tables[level][byte] = before >> 8 ^ tables[0][before & 255];
    }
  return tables;
}
constexpr auto kCrcTables = make_crc_tables();

void put16(std::string& out, std::uint64_t value) {
  for (int shift = 0; shift < 16; shift += 8) out += static_cast<char>(value >> shift & 255);
}
void put32(std::string& out, std::uint64_t value) {
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(value >> shift & 255);
}

}  // namespace

std::uint32_t crc32(std::span<const std::uint8_t> bytes, std::uint32_t start) {
  const auto& t = kCrcTables;
  std::uint32_t crc = ~start;
  const std::uint8_t* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; at += 8, left -= 8) {
    const std::uint32_t low = load_le<std::uint32_t>(at) ^ crc;
    const std::uint32_t high = load_le<std::uint32_t>(at + 4);
    crc = t[7][low & 255] ^ t[6][low >> 8 & 255] ^ t[5][low >> 16 & 255] ^ t[4][low >> 24] ^
          t[3][high & 255] ^ t[2][high >> 8 & 255] ^ t[1][high >> 16 & 255] ^ t[0][high >> 24];
  }
  for (; left > 0; ++at, --left) crc = crc >> 8 ^ t[0][(crc ^ *at) & 255];
  return ~crc;
}

template <class... Args>
void ZipReader::broken(fmt::format_string<Args...> format, Args&&... args) const {
  fail(ErrorKind::kModel,
       "{}: is not a sound zip archive: {}. Download or copy the file again, or save it anew.",
       file_.name, fmt::format(format, std::forward<Args>(args)...));
}

// Finds the central directory through the end record, which stands last in the file.
ZipReader::Directory ZipReader::locate() const {
  const std::uint8_t* data = file_.bytes.data();
  const std::uint64_t size = file_.bytes.size();
  if (size < kEndBytes) broken("{} bytes are too few", size);

  // The end record is followed only by its comment of up to 65535 bytes.
  std::uint64_t end = size - kEndBytes;
  const std::uint64_t lowest = end > kFull16 ? end - kFull16 : 0;
  while (load_le<std::uint32_t>(data + end) != kEnd ||
         load_le<std::uint16_t>(data + end + 20) != size - kEndBytes - end) {
    if (end == lowest) broken("its directory, at the end of the file, is missing (cut short?)");
    --end;
  }
  Directory directory;
  std::uint64_t disk = load_le<std::uint16_t>(data + end + 4);
  std::uint64_t directory_disk = load_le<std::uint16_t>(data + end + 6);
  std::uint64_t entries_here = load_le<std::uint16_t>(data + end + 8);
  directory.entries = load_le<std::uint16_t>(data + end + 10);
  directory.size = load_le<std::uint32_t>(data + end + 12);
  directory.offset = load_le<std::uint32_t>(data + end + 16);
  std::uint64_t limit = end;

  if (end >= kLocatorBytes && load_le<std::uint32_t>(data + end - kLocatorBytes) == kEnd64Locator) {
    const std::uint8_t* locator = data + end - kLocatorBytes;
    const std::uint64_t at = load_le<std::uint64_t>(locator + 8);
    const std::uint64_t room = end - kLocatorBytes;
    if (room < kEnd64Bytes || at > room - kEnd64Bytes ||
        load_le<std::uint32_t>(data + at) != kEnd64)
      broken("its zip64 end record is not where it should be");
    const std::uint8_t* wide = data + at;
    // A field of the short record either says "see the wide one" or must agree with it.
    auto widen = [&](std::uint64_t& field, std::uint64_t full, std::uint64_t value) {
      if (field != full && field != value) broken("its two end records contradict each other");
      field = value;
    };
    widen(disk, kFull16, load_le<std::uint32_t>(wide + 16));
    widen(directory_disk, kFull16, load_le<std::uint32_t>(wide + 20));
    widen(entries_here, kFull16, load_le<std::uint64_t>(wide + 24));
    widen(directory.entries, kFull16, load_le<std::uint64_t>(wide + 32));
    widen(directory.size, kFull32, load_le<std::uint64_t>(wide + 40));
    widen(directory.offset, kFull32, load_le<std::uint64_t>(wide + 48));
    limit = at;
  }
  if (disk != 0 || directory_disk != 0 || entries_here != directory.entries)
    broken("it is one part of several");
  if (directory.offset > limit || directory.size > limit - directory.offset)
    broken("its directory of {} bytes at {} does not fit into {}", directory.size, directory.offset,
           limit);
  if (directory.entries > directory.size / kCentralBytes)
    broken("{} entries do not fit into a directory of {} bytes", directory.entries, directory.size);
  return directory;
}

// One record of the central directory, `room` bytes from its start to the directory's end, and the
// local header it points to. Sets the span [begin, end) that the entry takes in the file.
ZipEntry ZipReader::parse_entry(const std::uint8_t* header, std::uint64_t room,
                                std::uint64_t directory, std::uint64_t& begin,
                                std::uint64_t& end) const {
  if (room < kCentralBytes || load_le<std::uint32_t>(header) != kCentralHeader)
    broken("its directory is cut short or overwritten");
  const std::uint64_t name_bytes = load_le<std::uint16_t>(header + 28);
  const std::uint64_t extra_bytes = load_le<std::uint16_t>(header + 30);
  if (room - kCentralBytes < name_bytes + extra_bytes) broken("its directory is cut short");

  ZipEntry entry;
  entry.name.assign(reinterpret_cast<const char*>(header + kCentralBytes), name_bytes);
  entry.encrypted = (load_le<std::uint16_t>(header + 8) & kEncryptedFlag) != 0;
  entry.method = load_le<std::uint16_t>(header + 10);
  entry.crc = load_le<std::uint32_t>(header + 16);
  std::uint64_t packed = load_le<std::uint32_t>(header + 20);
  std::uint64_t unpacked = load_le<std::uint32_t>(header + 24);
  std::uint64_t disk = load_le<std::uint16_t>(header + 34);
  begin = load_le<std::uint32_t>(header + 42);
  const std::string shown = printable(entry.name);
  if (entry.name.empty()) broken("an entry has no name");

  // Zip64: the numbers that did not fit stand in an extra field of type 1, in this order.
  const std::uint8_t* extra = header + kCentralBytes + name_bytes;
  const std::uint8_t* extra_end = extra + extra_bytes;
  while (extra_end - extra >= 4) {
    const std::uint16_t type = load_le<std::uint16_t>(extra);
    std::uint64_t length = load_le<std::uint16_t>(extra + 2);
    extra += 4;
    if (length > static_cast<std::uint64_t>(extra_end - extra))
      broken("the entry '{}' has a broken extra field", shown);
    if (type == 1) {
      const std::uint8_t* field = extra;
      for (std::uint64_t* number : {&unpacked, &packed, &begin}) {
        if (*number != kFull32) continue;
        if (length < 8) broken("the entry '{}' has a broken zip64 field", shown);
        *number = load_le<std::uint64_t>(field);
        field += 8;
        length -= 8;
      }
      if (disk == kFull16 && length >= 4) disk = load_le<std::uint32_t>(field);
      break;
    }
    extra += length;
  }
  if (disk != 0) broken("the entry '{}' lies in another part", shown);
  if (entry.method == 0 && packed != unpacked)
    broken("the entry '{}' is stored, yet has two sizes ({} and {})", shown, packed, unpacked);

  // The sizes in the local header may be left zero (a data descriptor follows): the directory's
  // count. Its name and method must agree.
  if (begin > directory || directory - begin < kLocalBytes ||
      load_le<std::uint32_t>(file_.bytes.data() + begin) != kLocalHeader)
    broken("the entry '{}' is not where the directory says", shown);
  const std::uint8_t* local = file_.bytes.data() + begin;
  const std::uint64_t local_name_bytes = load_le<std::uint16_t>(local + 26);
  const std::uint64_t header_bytes =
      kLocalBytes + local_name_bytes + load_le<std::uint16_t>(local + 28);
  const std::uint64_t left = directory - begin;
  if (header_bytes > left || packed > left - header_bytes)
    broken("the entry '{}' of {} bytes does not fit into the file", shown, packed);
  if (local_name_bytes != name_bytes ||
      std::memcmp(local + kLocalBytes, entry.name.data(), name_bytes) != 0 ||
      load_le<std::uint16_t>(local + 8) != entry.method)
    broken("the entry '{}' is called or packed otherwise in its own header", shown);
  end = begin + header_bytes + packed;
  entry.raw = file_.bytes.subspan(begin + header_bytes, packed);
  return entry;
}

ZipReader::ZipReader(FileBytes file) : file_(std::move(file)) {
  const Directory directory = locate();
  std::vector<std::pair<std::uint64_t, std::uint64_t>> spans;
  spans.reserve(directory.entries);
  entries_.reserve(directory.entries);
  std::uint64_t position = 0;
  for (std::uint64_t i = 0; i < directory.entries; ++i) {
    const std::uint64_t room = directory.size - position;
    const std::uint8_t* header = file_.bytes.data() + directory.offset + position;
    std::uint64_t begin = 0, end = 0;
    entries_.push_back(parse_entry(header, room, directory.offset, begin, end));
    spans.emplace_back(begin, end);
    const std::uint64_t record = kCentralBytes + load_le<std::uint16_t>(header + 28) +
                                 load_le<std::uint16_t>(header + 30) +
                                 load_le<std::uint16_t>(header + 32);
    if (record > room) broken("its directory is cut short");
    position += record;
    if (!index_.emplace(entries_.back().name, i).second)
      broken("it has two entries called '{}'", printable(entries_.back().name));
  }
  std::sort(spans.begin(), spans.end());
  for (std::size_t i = 1; i < spans.size(); ++i)
    if (spans[i].first < spans[i - 1].second)
      broken("two entries overlap at byte {}", spans[i].first);
}

const ZipEntry* ZipReader::find(const std::string& name) const {
  auto found = index_.find(name);
  return found == index_.end() ? nullptr : &entries_[found->second];
}

std::span<const std::uint8_t> ZipReader::read(const ZipEntry& entry) const {
  check(!entry.encrypted, ErrorKind::kModel,
        "{}: the entry '{}' is encrypted. Unpack it and save the weights without a password.",
        file_.name, printable(entry.name));
  check(entry.method == 0, ErrorKind::kModel,
        "{}: the entry '{}' is compressed (method {}), and weight archives are read uncompressed "
        "only. Save the file anew with torch.save, which does not compress.",
        file_.name, printable(entry.name), entry.method);
  check(entry.crc == 0 || crc32(entry.raw) == entry.crc, ErrorKind::kModel,
        "{}: the entry '{}' does not match its checksum: the file is damaged. Download or copy it "
        "again.",
        file_.name, printable(entry.name));
  return entry.raw;
}

ZipWriter::ZipWriter(const std::filesystem::path& path) : path_(path.string()), file_(path) {}

void ZipWriter::add(const std::string& name, std::span<const std::uint8_t> bytes) {
  const std::filesystem::path relative = name;
  const bool climbs = std::find(relative.begin(), relative.end(), "..") != relative.end();
  check(!name.empty() && name.size() < kFull16 && name.front() != '/' && !climbs &&
            name.find('\\') == std::string::npos,
        ErrorKind::kUsage,
        "{}: '{}' cannot name an entry of a zip archive: expected a relative path with forward "
        "slashes",
        path_, printable(name));
  check(!names_.count(name), ErrorKind::kUsage, "{}: the entry '{}' was added twice", path_,
        printable(name));
  // Everything up to the end record must stay below 4 GB, where plain zip ends.
  const std::uint64_t around =
      offset_ + directory_.size() + kLocalBytes + kCentralBytes + 2 * name.size() + kEndBytes;
  check(names_.size() + 1 < kFull16 && around < kFull32 && bytes.size() < kFull32 - around,
        ErrorKind::kFailure,
        "{}: the archive would pass the limits of zip (4 GB, 65534 entries) with '{}'. Split it "
        "into several archives.",
        path_, printable(name));

  const bool ascii = std::all_of(name.begin(), name.end(),
                                 [](char c) { return static_cast<unsigned char>(c) < 128; });
  std::string common;  // what the local header and the directory record share
  put16(common, 20);   // version 2.0 is needed to unpack
  put16(common, ascii ? 0 : kUtf8Flag);
  put16(common, 0);           // stored
  put16(common, 0);           // 00:00
  put16(common, 1 << 5 | 1);  // 1980-01-01
  put32(common, crc32(bytes));
  put32(common, bytes.size());
  put32(common, bytes.size());
  put16(common, name.size());
  put16(common, 0);  // no extra field

  std::string local;
  put32(local, kLocalHeader);
  local += common + name;
  file_.write(local);
  file_.write(bytes.data(), bytes.size());

  put32(directory_, kCentralHeader);
  put16(directory_, 3 << 8 | 20);  // made on Unix: the attributes below are a file mode
  directory_ += common;
  put16(directory_, 0);  // no comment
  put16(directory_, 0);  // disk
  put16(directory_, 0);  // internal attributes
  put32(directory_, std::uint64_t{0100644} << 16);
  put32(directory_, offset_);
  directory_ += name;

  offset_ += local.size() + bytes.size();
  names_.insert(name);
}

void ZipWriter::add(const std::string& name, std::string_view text) {
  add(name, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

void ZipWriter::commit() {
  std::string end = directory_;
  put32(end, kEnd);
  put16(end, 0);  // this disk
  put16(end, 0);  // the directory's disk
  put16(end, names_.size());
  put16(end, names_.size());
  put32(end, directory_.size());
  put32(end, offset_);
  put16(end, 0);  // no comment
  file_.write(end);
  file_.commit();
}

}  // namespace nmrf
