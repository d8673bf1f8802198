#include "core/log.h"

#include <mutex>

namespace nmrf {
namespace {

struct SinkSlot {
  std::mutex mutex;
  LogSink sink;
};

SinkSlot& slot() {
  static SinkSlot instance;
  return instance;
}

}  // namespace

void set_log_sink(LogSink sink) {
  std::lock_guard lock(slot().mutex);
  slot().sink = std::move(sink);
}

void log_message(LogLevel level, const std::string& text) {
  std::lock_guard lock(slot().mutex);
  if (slot().sink) slot().sink(level, text);
}

}  // namespace nmrf
