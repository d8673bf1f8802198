// TOML files as JSON objects, the form in which option structs take their settings.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace nmrf {

// Reads a TOML file into JSON; a syntax error names file and line.
nlohmann::json read_toml(const std::string& path);
// The reverse, for saving effective settings.
std::string to_toml(const nlohmann::json& object);

}  // namespace nmrf
