// Where the library's messages go. The library itself never prints.
#pragma once

#include <functional>
#include <string>

#include "nmrf/export.h"

namespace nmrf {

enum class LogLevel { kDebug, kInfo, kWarning };  // severity of a message

using LogSink = std::function<void(LogLevel, const std::string&)>;  // receives messages

// Sets the receiver of all messages; an empty sink (the default) drops them. Thread-safe; the sink
// is called under a lock, one message at a time.
NMRF_API void set_log_sink(LogSink sink);

}  // namespace nmrf
