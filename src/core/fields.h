// One truth for settings: an option struct lists its fields once, and that list serves JSON (model
// files, checkpoints), TOML (configs), `--set key=value` and the documentation.
//
//   struct BlurOptions {
//     int radius = 3;
//     template <class Self, class Visitor>
//     static void fields(Self& self, Visitor&& visit) {
//       visit("radius", self.radius, "pixels");
//     }
//   };
//
// Keys may be dotted ("backbone.stem"); in JSON and TOML the parts are nested objects. Supported
// field types: bool, int, std::int64_t, double, std::string, vectors of int, double or std::string,
// and enums with an EnumNames specialisation.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/check.h"

namespace nmrf {

// Specialise with `static constexpr std::array<std::pair<E, const char*>, N> values`.
template <class E>
struct EnumNames;

template <class E>
std::string enum_name(E value) {
  for (const auto& [candidate, name] : EnumNames<E>::values)
    if (candidate == value) return name;
  return "?";
}

namespace fields_detail {

using nlohmann::json;

template <class E>
std::string enum_choices() {
  std::string all;
  for (const auto& [value, name] : EnumNames<E>::values) {
    if (!all.empty()) all += ", ";
    all += name;
  }
  return all;
}

template <class T>
json encode(const T& value) {
  if constexpr (std::is_enum_v<T>)
    return enum_name(value);
  else
    return value;
}

[[noreturn]] void wrong_type(std::string_view key, const json& value, std::string_view expected);

template <class T>
void decode(std::string_view key, const json& value, T& out) {
  if constexpr (std::is_enum_v<T>) {
    if (value.is_string())
      for (const auto& [candidate, name] : EnumNames<T>::values)
        if (value.get<std::string>() == name) {
          out = candidate;
          return;
        }
    wrong_type(key, value, "one of " + enum_choices<T>());
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!value.is_boolean()) wrong_type(key, value, "true or false");
    out = value.get<bool>();
  } else if constexpr (std::is_integral_v<T>) {
    if (!value.is_number_integer()) wrong_type(key, value, "a whole number");
    auto wide = value.get<std::int64_t>();
    if (static_cast<std::int64_t>(static_cast<T>(wide)) != wide)
      wrong_type(key, value, "a smaller number");
    out = static_cast<T>(wide);
  } else if constexpr (std::is_floating_point_v<T>) {
    if (!value.is_number()) wrong_type(key, value, "a number");
    out = value.get<T>();
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!value.is_string()) wrong_type(key, value, "a string");
    out = value.get<std::string>();
  } else {  // a vector
    if (!value.is_array()) wrong_type(key, value, "a list");
    T list;
    for (const auto& item : value) {
      typename T::value_type element{};
      decode(key, item, element);
      list.push_back(element);
    }
    out = std::move(list);
  }
}

// "backbone.stem" -> "/backbone/stem"
json::json_pointer pointer_of(std::string_view dotted);
// Throws when `object` has a leaf that is not in `known`, and names the closest known key.
void reject_unknown(const json& object, const std::vector<std::string>& known,
                    std::string_view what);
// What stands after '=' on the command line: a JSON value where it parses as one, else a string.
json parse_value(const std::string& text);

}  // namespace fields_detail

// The fields as a nested JSON object.
template <class Options>
nlohmann::json to_json_object(const Options& options) {
  nlohmann::json object = nlohmann::json::object();
  Options::fields(options, [&](const char* key, const auto& value, const char*) {
    object[fields_detail::pointer_of(key)] = fields_detail::encode(value);
  });
  return object;
}

// Sets the fields that `object` holds and leaves the others; an unknown key is a usage Error that
// names the closest known one. `what` names the source ("configs/fast.toml") in messages.
template <class Options>
void from_json_object(Options& options, const nlohmann::json& object, std::string_view what) {
  std::vector<std::string> known;
  Options::fields(options, [&](const char* key, auto& value, const char*) {
    known.emplace_back(key);
    auto pointer = fields_detail::pointer_of(key);
    if (object.contains(pointer)) fields_detail::decode(key, object[pointer], value);
  });
  fields_detail::reject_unknown(object, known, what);
}

// Applies one "key=value" from the command line.
template <class Options>
void set_field(Options& options, const std::string& assignment) {
  auto equals = assignment.find('=');
  check(equals != std::string::npos && equals > 0, ErrorKind::kUsage, "'{}': expected KEY=VALUE",
        assignment);
  nlohmann::json object = nlohmann::json::object();
  object[fields_detail::pointer_of(assignment.substr(0, equals))] =
      fields_detail::parse_value(assignment.substr(equals + 1));
  from_json_object(options, object, "'" + assignment + "'");
}

}  // namespace nmrf
