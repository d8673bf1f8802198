#include "io/toml.h"

#include <toml++/toml.h>

#include "core/check.h"
#include "core/file.h"

namespace nmrf {
namespace {

using nlohmann::json;

json from_toml_node(const toml::node& node) {
  if (const auto* table = node.as_table()) {
    json object = json::object();
    for (const auto& [key, value] : *table) object[std::string(key.str())] = from_toml_node(value);
    return object;
  }
  if (const auto* array = node.as_array()) {
    json list = json::array();
    for (const auto& value : *array) list.push_back(from_toml_node(value));
    return list;
  }
  if (const auto* value = node.as_string()) return value->get();
  if (const auto* value = node.as_integer()) return value->get();
  if (const auto* value = node.as_floating_point()) return value->get();
  if (const auto* value = node.as_boolean()) return value->get();
  fail(ErrorKind::kInput, "line {}: dates and times are no settings", node.source().begin.line);
}

// TOML text of one value; JSON's spelling serves.
std::string toml_value(const json& value) {
  if (value.is_array()) {
    std::string list = "[";
    for (std::size_t i = 0; i < value.size(); ++i) list += (i ? ", " : "") + toml_value(value[i]);
    return list + "]";
  }
  return value.dump();  // JSON strings, numbers and booleans are valid TOML
}

void write_toml(const json& object, const std::string& path, std::string& out) {
  for (const auto& [key, value] : object.items())
    if (!value.is_object()) out += key + " = " + toml_value(value) + "\n";
  for (const auto& [key, value] : object.items()) {
    if (!value.is_object()) continue;
    std::string below = path.empty() ? key : path + "." + key;
    out += "\n[" + below + "]\n";
    write_toml(value, below, out);
  }
}

}  // namespace

nlohmann::json read_toml(const std::string& path) {
  std::string text = read_file(path, ErrorKind::kInput, 1 << 24);
  try {
    return from_toml_node(toml::parse(text, path));
  } catch (const toml::parse_error& error) {
    fail(ErrorKind::kInput, "{}, line {}: not valid TOML: {}", path, error.source().begin.line,
         error.description());
  }
}

std::string to_toml(const nlohmann::json& object) {
  std::string text;
  write_toml(object, "", text);
  return text;
}

}  // namespace nmrf
