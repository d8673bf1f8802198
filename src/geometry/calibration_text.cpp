#include "geometry/calibration_text.h"

#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/file.h"

namespace nmrf {
namespace {

// Cuts the first line off a text; without its end.
std::string_view take_line(std::string_view& content) {
  const std::size_t end = std::min(content.find('\n'), content.size());
  const std::string_view line = content.substr(0, end);
  content.remove_prefix(std::min(end + 1, content.size()));
  return line;
}

std::size_t indentation(std::string_view line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

// The data of a matrix that is written as a block of rows, cols and data, else the entry itself.
std::optional<Numbers> yaml_numbers(const std::string& entry) {
  std::string_view text = entry;
  const std::size_t data = text.find("data:");
  if (data != std::string_view::npos) text = text.substr(data + 5);
  if (trimmed(text).starts_with('[')) {  // to the bracket that closes the list
    int depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      depth += (text[i] == '[') - (text[i] == ']');
      if (text[i] == ']' && depth == 0) return numbers_of(text.substr(0, i));
    }
  }
  return numbers_of(text);
}

// What stands between <key ...> and </key>.
std::optional<std::string_view> xml_value(std::string_view content, std::string_view key) {
  for (std::size_t at = 0; (at = content.find(key, at)) != std::string_view::npos; ++at) {
    const std::string_view after = content.substr(at + key.size());
    const bool opens = at > 0 && content[at - 1] == '<';
    if (!opens || !(after.starts_with('>') || after.starts_with(' '))) continue;
    const std::size_t begin = after.find('>');
    const std::size_t end = after.find(fmt::format("</{}>", key));
    if (begin == std::string_view::npos || end == std::string_view::npos || end < begin)
      return std::string_view();
    const std::string_view value = after.substr(begin + 1, end - begin - 1);
    if (key == "data") return value;
    return xml_value(value, "data").value_or(value);
  }
  return std::nullopt;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n\v\f";
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

std::string_view bare(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return trimmed(text);
}

std::optional<Numbers> numbers_of(std::string_view text) {
  constexpr std::string_view separators = " \t\r\n,;[]";
  Numbers numbers;
  std::size_t at = 0;
  while ((at = text.find_first_not_of(separators, at)) != std::string_view::npos) {
    const std::size_t end = std::min(text.find_first_of(separators, at), text.size());
    std::string_view word = text.substr(at, end - at);
    at = end;
    if (word == "-") continue;
    if (word.starts_with('+')) word.remove_prefix(1);
    double value = 0;
    auto [stop, code] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (code != std::errc() || stop != word.data() + word.size()) return std::nullopt;
    numbers.push_back(value);
  }
  return numbers;
}

bool has_key(std::string_view content, std::string_view key, char separator) {
  for (std::size_t at = 0; (at = content.find(key, at)) != std::string_view::npos; ++at) {
    const std::size_t line = content.find_last_of('\n', at) + 1;  // npos + 1 = 0
    const std::string_view after = trimmed(content.substr(at + key.size()));
    if (trimmed(content.substr(line, at - line)).empty() && after.starts_with(separator))
      return true;
  }
  return false;
}

std::optional<std::string> yaml_entry(std::string_view content, std::string_view key) {
  std::optional<std::size_t> outermost;
  while (!content.empty()) {
    const std::string_view line = take_line(content);
    const std::string_view words = trimmed(line);
    if (words.empty() || words.starts_with('#') || words.starts_with('%') || words == "---")
      continue;
    const std::size_t indent = indentation(line);
    if (!outermost) outermost = indent;
    if (indent != *outermost || !words.starts_with(key)) continue;
    const std::string_view after = words.substr(key.size());
    if (!trimmed(after).starts_with(':')) continue;
    std::string entry(trimmed(trimmed(after).substr(1)));
    if (entry.starts_with('!')) entry.erase(0, entry.find_first_of(" \t"));  // a tag
    while (!content.empty()) {
      std::string_view rest = content;
      const std::string_view next = take_line(rest);
      const std::string_view inner = trimmed(next);
      const bool listed = indentation(next) == indent && inner.starts_with('-') && inner != "---";
      if (!inner.empty() && indentation(next) <= indent && !listed) break;
      entry += "\n";
      entry += next;
      content = rest;
    }
    return entry;
  }
  return std::nullopt;
}

std::string read_calibration_text(const std::string& file) {
  constexpr std::uint64_t kLimit = 1 << 22;  // such files have a few lines
  return read_file(file, ErrorKind::kInput, kLimit);
}

void Entries::add_lines(std::string_view content, char separator) {
  while (!content.empty()) {
    const std::string_view line = take_line(content);
    const std::size_t mark = line.find(separator);
    if (mark == std::string_view::npos) continue;
    if (auto numbers = numbers_of(line.substr(mark + 1)))
      add(std::string(trimmed(line.substr(0, mark))), std::move(*numbers));
  }
}

void Entries::add_yaml(std::string_view content, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (const auto entry = yaml_entry(content, key))
      add(key, yaml_numbers(*entry).value_or(Numbers{}));
}

void Entries::add_opencv(std::string_view content, std::initializer_list<const char*> keys) {
  if (!content.starts_with('{') && !content.starts_with('<')) return add_yaml(content, keys);
  const auto object =
      content.starts_with('{') ? nlohmann::json::parse(content, nullptr, false) : nlohmann::json();
  for (const char* key : keys) {
    if (object.is_object()) {
      if (!object.contains(key)) continue;
      const auto& node = object[key];
      const auto& value = node.is_object() && node.contains("data") ? node["data"] : node;
      Numbers numbers;
      if (value.is_number()) numbers.push_back(value.get<double>());
      if (value.is_array())
        for (const auto& item : value)
          if (item.is_number()) numbers.push_back(item.get<double>());
      add(key, std::move(numbers));
    } else if (const auto value = xml_value(content, key)) {
      add(key, numbers_of(*value).value_or(Numbers{}));
    }
  }
}

std::string Entries::any(std::initializer_list<const char*> keys) const {
  for (const char* key : keys)
    if (has(key)) return key;
  return *keys.begin();
}

const Numbers& Entries::get(const std::string& key) const {
  auto found = entries_.find(key);
  if (found == entries_.end()) missing(fmt::format("'{}'", key));
  return found->second;
}

const Numbers& Entries::get(const std::string& key, std::size_t count) const {
  const Numbers& values = get(key);
  check(values.size() == count, ErrorKind::kInput,
        "{}: recognised as {}, but '{}' has {} numbers, expected {}.", file_, format_, key,
        values.size(), count);
  return values;
}

int Entries::pixels(const std::string& key, double value) const {
  check(value >= 0 && value <= 1e6 && value == std::floor(value), ErrorKind::kInput,
        "{}: recognised as {}, but '{}' holds {}, not a number of pixels.", file_, format_, key,
        value);
  return static_cast<int>(value);
}

const Numbers& Entries::camera(const std::string& key) const {
  const Numbers& k = get(key, 9);
  check(k[3] == 0 && k[6] == 0 && k[7] == 0 && k[8] == 1, ErrorKind::kInput,
        "{}: recognised as {}, but '{}' is not a camera matrix: expected fx 0 cx, 0 fy cy, 0 0 1.",
        file_, format_, key);
  return k;
}

void Entries::missing(const std::string& what) const {
  std::vector<std::string> found;
  for (const auto& [key, values] : entries_) found.push_back(key);
  fail(ErrorKind::kInput, "{}: recognised as {}, but {} is missing. Found: {}.", file_, format_,
       what, found.empty() ? "nothing of use" : fmt::format("{}", fmt::join(found, ", ")));
}

std::string Entries::source() const { return fmt::format("{} ({})", file_, format_); }

}  // namespace nmrf
