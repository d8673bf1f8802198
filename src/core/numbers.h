// What C++20 has and the standard library of WebAssembly's compiler (libc++ 13) does not.
#pragma once

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace nmrf {

template <class To, class From>
To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From) && std::is_trivially_copyable_v<To> &&
                std::is_trivially_copyable_v<From>);
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

// The number that the whole text is, in the "C" locale.
inline std::optional<double> parse_double(std::string_view text) {
#if defined(__cpp_lib_to_chars)
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
#else
  // strtod would also skip blanks, and take a plus sign and hexadecimal digits.
  if (text.empty() || text[0] == '+' || text.find_first_of(" \t\r\n\v\fxX") != text.npos) return {};
  const std::string copy(text);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (end != copy.c_str() + copy.size()) return {};
  return value;
#endif
}

}  // namespace nmrf
