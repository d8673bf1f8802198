#include "weights/file_bytes.h"

#include <fmt/format.h>

#include "core/file.h"

namespace nmrf {

FileBytes map_weight_file(const std::filesystem::path& path) {
  auto map = std::make_shared<const MappedFile>(path, ErrorKind::kModel);
  return {path.string(), {map->data(), map->size()}, map};
}

std::string printable(std::string_view text) {
  constexpr std::size_t kLongest = 120;
  std::string out;
  for (char c : text.substr(0, kLongest)) {
    if (c >= 0x20 && c < 0x7f)
      out += c;
    else
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  if (text.size() > kLongest) out += "...";
  return out;
}

}  // namespace nmrf
