#include "core/fields.h"

#include <algorithm>

#include "core/closest.h"

namespace nmrf {
namespace fields_detail {

void wrong_type(std::string_view key, const json& value, std::string_view expected) {
  fail(ErrorKind::kUsage, "setting '{}' is {}; expected {}", key, value.dump(), expected);
}

json::json_pointer pointer_of(std::string_view dotted) {
  std::string path = "/" + std::string(dotted);
  std::replace(path.begin(), path.end(), '.', '/');
  return json::json_pointer(path);
}

namespace {

void leaves(const json& object, const std::string& prefix, std::vector<std::string>& out) {
  for (const auto& [key, value] : object.items()) {
    std::string path = prefix.empty() ? key : prefix + "." + key;
    if (value.is_object())
      leaves(value, path, out);
    else
      out.push_back(path);
  }
}

}  // namespace

void reject_unknown(const json& object, const std::vector<std::string>& known,
                    std::string_view what) {
  check(object.is_object(), ErrorKind::kUsage, "{}: expected a table of settings", what);
  std::vector<std::string> found;
  leaves(object, "", found);
  for (const auto& key : found) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    fail(ErrorKind::kUsage, "{}: unknown setting '{}'. Did you mean '{}'?", what, key,
         closest(key, known));
  }
}

json parse_value(const std::string& text) {
  json value = json::parse(text, nullptr, false);
  return value.is_discarded() ? json(text) : value;
}

}  // namespace fields_detail

}  // namespace nmrf
