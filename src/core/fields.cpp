#include "core/fields.h"

#include <algorithm>
#include <numeric>

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

// Levenshtein distance.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

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
    auto closest = std::min_element(known.begin(), known.end(), [&](const auto& a, const auto& b) {
      return distance(a, key) < distance(b, key);
    });
    fail(ErrorKind::kUsage, "{}: there is no setting '{}'. Did you mean '{}'?", what, key,
         closest == known.end() ? "" : *closest);
  }
}

json parse_value(const std::string& text) {
  json value = json::parse(text, nullptr, false);
  return value.is_discarded() ? json(text) : value;
}

}  // namespace fields_detail

}  // namespace nmrf
