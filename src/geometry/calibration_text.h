// The text of calibration files: numbers under names, in the few forms that the field writes.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nmrf {

using Numbers = std::vector<double>;

std::string_view trimmed(std::string_view text);
// Without the mark some editors put first, and trimmed.
std::string_view bare(std::string_view text);

// The numbers of `text`, separated by blanks, commas, semicolons, brackets or the dashes of a YAML
// list; nothing when anything else is in it.
std::optional<Numbers> numbers_of(std::string_view text);

// True when a line begins with `key` and `separator`, blanks aside.
bool has_key(std::string_view content, std::string_view key, char separator);

// What stands under a key of the outermost level of a YAML text: the rest of its line and the lines
// that are indented further or belong to its list. Indented blocks read as texts of their own.
std::optional<std::string> yaml_entry(std::string_view content, std::string_view key);

// The text of a file that may be a calibration; throws Error(kInput).
std::string read_calibration_text(const std::string& file);

// Named entries of one calibration file. Knows the file and its format, so that every complaint
// says what was recognised, what is missing, and what is there.
class Entries {
 public:
  Entries(std::string file, std::string format)
      : file_(std::move(file)), format_(std::move(format)) {}

  void add(std::string key, Numbers values) { entries_.emplace(std::move(key), std::move(values)); }
  // Lines of the form key<separator>numbers. Entries that are no numbers (dates) are left out.
  void add_lines(std::string_view content, char separator);
  // These keys of YAML, and those of OpenCV's yml, xml and json. Not by cv::FileStorage, which
  // crashes on damaged files and allocates what a forged matrix size asks for.
  void add_yaml(std::string_view content, std::initializer_list<const char*> keys);
  void add_opencv(std::string_view content, std::initializer_list<const char*> keys);

  bool has(const std::string& key) const { return entries_.contains(key); }
  // The first of these names that is there; the first of all when none is.
  std::string any(std::initializer_list<const char*> keys) const;
  const Numbers& get(const std::string& key) const;
  const Numbers& get(const std::string& key, std::size_t count) const;
  double number(const std::string& key) const { return get(key, 1)[0]; }
  double number(const std::string& key, double otherwise) const {
    return has(key) ? number(key) : otherwise;
  }
  // A size in pixels; 0 when the file does not tell.
  int size(const std::string& key) const { return pixels(key, number(key, 0)); }
  int pixels(const std::string& key, double value) const;
  // The nine numbers of a camera matrix.
  const Numbers& camera(const std::string& key) const;

  [[noreturn]] void missing(const std::string& what) const;
  std::string source() const;

 private:
  std::string file_;
  std::string format_;
  std::map<std::string, Numbers> entries_;
};

}  // namespace nmrf
