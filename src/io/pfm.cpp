#include "io/pfm.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "core/check.h"
#include "core/file.h"

namespace nmrf {
namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "the writers assume little-endian");

namespace {

struct Header {
  std::int64_t width = 0;
  std::int64_t height = 0;
  int channels = 1;
  bool big_endian = false;
  std::size_t data = 0;  // byte offset of the first value
};

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

// The next word and the position after it, comments left out; a word longer than 32 characters is
// no header.
std::string_view next_word(std::string_view content, std::size_t& at) {
  while (at < content.size() && (is_space(content[at]) || content[at] == '#'))
    at = content[at] == '#' ? std::min(content.find('\n', at), content.size()) : at + 1;
  const std::size_t start = at;
  while (at < content.size() && !is_space(content[at]) && at - start < 32) ++at;
  return content.substr(start, at - start);
}

template <class T>
bool parse(std::string_view word, T& value) {
  if (word.starts_with('+')) word.remove_prefix(1);
  auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), value);
  return code == std::errc() && end == word.data() + word.size();
}

// How many white bytes lie between the scale and the values. One, says the format; Windows tools
// write two, and some tools leave a blank at the end of each line. The rest of the file tells
// which.
std::size_t gap_after_scale(std::string_view rest, std::uint64_t need) {
  if (rest.starts_with("\r\n")) return 2;
  for (std::string_view gap : {" \r\n", " \n"})
    if (rest.size() == gap.size() + need && rest.starts_with(gap)) return gap.size();
  return rest.empty() || !is_space(rest[0]) ? 0 : 1;
}

Header parse_header(std::string_view content, const std::string& name) {
  std::size_t at = 0;
  Header header;
  const std::string_view magic = next_word(content, at);
  check(magic == "Pf" || magic == "PF", ErrorKind::kInput,
        "{}: is not a PFM file: expected it to begin with 'Pf' or 'PF'.", name);
  header.channels = magic == "PF" ? 3 : 1;
  const std::string_view width = next_word(content, at);
  const std::string_view height = next_word(content, at);
  const std::string_view scale_word = next_word(content, at);
  double scale = 0;
  check(
      parse(width, header.width) && parse(height, header.height) && parse(scale_word, scale) &&
          std::isfinite(scale) && scale != 0,
      ErrorKind::kInput,
      "{}: the PFM header is damaged: expected width, height and a scale other than 0 after '{}', "
      "found '{}', '{}', '{}'.",
      name, magic, width, height, scale_word);
  header.big_endian = scale > 0;
  constexpr std::int64_t kMost = 1 << 24;  // keeps the products below within 64 bits
  check(header.width > 0 && header.height > 0 && header.width <= kMost && header.height <= kMost,
        ErrorKind::kInput, "{}: the PFM header says {}x{} pixels, which no map has.", name,
        header.width, header.height);

  const auto need =
      static_cast<std::uint64_t>(header.width * header.height) * header.channels * sizeof(float);
  const std::string_view rest = content.substr(at);
  const std::size_t gap = gap_after_scale(rest, need);
  const std::size_t have = rest.size() - gap;
  check(gap > 0 && have == need, ErrorKind::kInput,
        "{}: {}x{} pixels of {} channel{} need {} bytes of values, the file has {}: it {}. Copy or "
        "download the file again.",
        name, header.width, header.height, header.channels, header.channels == 1 ? "" : "s", need,
        have, have < need ? "is truncated" : "has bytes left over");
  header.data = at + gap;
  return header;
}

}  // namespace

FloatMap read_pfm(const fs::path& path) {
  const MappedFile file(path, ErrorKind::kInput);
  const std::string_view content(reinterpret_cast<const char*>(file.data()), file.size());
  const Header header = parse_header(content, path.string());
  FloatMap map(static_cast<int>(header.width), static_cast<int>(header.height));
  const std::uint8_t* source = file.data() + header.data;
  const std::size_t step = sizeof(float) * static_cast<std::size_t>(header.channels);
  for (int y = map.height() - 1; y >= 0; --y) {  // the file begins with the bottom row
    float* target = map.row(y);
    for (int x = 0; x < map.width(); ++x, source += step) {
      std::uint32_t bits;
      std::memcpy(&bits, source, sizeof bits);
      if (header.big_endian) bits = __builtin_bswap32(bits);
      target[x] = std::bit_cast<float>(bits);
    }
  }
  return map;
}

void write_pfm(const fs::path& path, const FloatMap& map) {
  check(!map.empty(), ErrorKind::kUsage, "{}: the map is empty.", path.string());
  AtomicFile file(path);
  file.write(fmt::format("Pf\n{} {}\n-1\n", map.width(), map.height()));
  for (int y = map.height() - 1; y >= 0; --y)
    file.write(map.row(y), sizeof(float) * static_cast<std::size_t>(map.width()));
  file.commit();
}

}  // namespace nmrf
