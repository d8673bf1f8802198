#include "io/list_file.h"

#include <cstdint>
#include <string_view>

#include "core/check.h"
#include "core/file.h"

namespace nmrf {
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kMaxListBytes = std::uint64_t{1} << 28;

std::vector<std::string> columns_of(std::string_view line, const fs::path& path, int number) {
  std::vector<std::string> columns;
  std::size_t at = 0;
  while (true) {
    at = line.find_first_not_of(" \t\r\v\f", at);
    if (at == std::string_view::npos || line[at] == '#') return columns;
    bool quoted = line[at] == '"';
    std::size_t begin = quoted ? at + 1 : at;
    std::size_t end = quoted ? line.find('"', begin) : line.find_first_of(" \t\r\v\f", begin);
    check(!quoted || end != std::string_view::npos, ErrorKind::kInput,
          "{}, line {}: a quote is opened and never closed", path.string(), number);
    if (end == std::string_view::npos) end = line.size();
    columns.emplace_back(line.substr(begin, end - begin));
    at = quoted ? end + 1 : end;
  }
}

}  // namespace

std::vector<ListLine> read_list(const fs::path& path) {
  std::string text = read_file(path, ErrorKind::kInput, kMaxListBytes);
  std::string_view rest = text;
  if (rest.starts_with("\xef\xbb\xbf")) rest.remove_prefix(3);  // the mark some editors put first
  std::vector<ListLine> lines;
  for (int number = 1; !rest.empty(); ++number) {
    std::size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (auto columns = columns_of(line, path, number); !columns.empty())
      lines.push_back({number, std::move(columns)});
  }
  return lines;
}

}  // namespace nmrf
