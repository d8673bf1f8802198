// Checks that throw nmrf::Error with a formatted message.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "nmrf/error.h"

namespace nmrf {

template <class... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(kind, fmt::format(format, std::forward<Args>(args)...));
}

// check(ok, ErrorKind::kInput, "{}: expected {}", path, what): throws unless `ok`.
template <class... Args>
void check(bool ok, ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  if (!ok) fail(kind, format, std::forward<Args>(args)...);
}

}  // namespace nmrf
