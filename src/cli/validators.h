// Checks of numbers whose messages a person can read: CLI11 prints the largest double in full.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace nmrf::cli {

namespace validators {
inline CLI::Validator number(bool zero, const char* name, const char* message) {
  return CLI::Validator(
      [zero, message](std::string& text) -> std::string {
        double value = 0;
        if (!CLI::detail::lexical_cast(text, value)) return text + " is not a number";
        return value > 0 || (zero && value == 0) ? "" : text + " " + message;
      },
      name);
}
}  // namespace validators

inline CLI::Validator non_negative() {
  return validators::number(true, "NONNEGATIVE", "is below 0");
}
inline CLI::Validator positive() { return validators::number(false, "POSITIVE", "is not above 0"); }

}  // namespace nmrf::cli
