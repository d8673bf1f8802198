// What stands behind the C interface: its handles, and the way exceptions and structs cross it.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "core/check.h"
#include "nmrf/matcher.h"
#include "nmrf/nmrf.h"
#include "nmrf/sequence.h"

struct nmrf_matcher {
  std::shared_ptr<const nmrf::Matcher> matcher;  // null when loading failed
  std::string message;
};

struct nmrf_result {
  nmrf::Disparity disparity;
  std::string message;
};

struct nmrf_sequence {
  std::shared_ptr<const nmrf::Matcher> matcher;  // outlives the sequence
  std::unique_ptr<nmrf::Sequence> sequence;      // null when it could not be made
  std::string message;
};

namespace nmrf::capi {

// Runs `body` and turns what it throws into a status and a message.
template <class Body>
nmrf_status guarded(std::string& message, Body&& body) noexcept {
  const auto failed = [&](nmrf_status status, const char* text) {
    try {
      message = text;
    } catch (...) {
      message.clear();  // no room for the sentence; the code has to do
    }
    return status;
  };
  try {
    message.clear();
    body();
    return NMRF_OK;
  } catch (const Error& error) {
    return failed(static_cast<nmrf_status>(error.exit_code()), error.what());
  } catch (const std::bad_alloc&) {
    return failed(NMRF_DEVICE, "not enough memory");
  } catch (const std::exception& error) {
    return failed(NMRF_FAILURE, error.what());
  } catch (...) {
    return failed(NMRF_FAILURE, "an exception of an unknown type");
  }
}

// A struct of a program compiled with another version of the header: fields that it does not have
// are zero; fields that this library does not have must be.
template <class T>
T read_struct(const T* given, const char* name) {
  check(given != nullptr, ErrorKind::kUsage, "{} is NULL", name);
  check(given->size >= sizeof(std::size_t) && given->size <= 4096, ErrorKind::kUsage,
        "{}: its size is {}; set it to the sizeof of the struct", name, given->size);
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (std::size_t i = sizeof(T); i < given->size; ++i)
    check(bytes[i] == 0, ErrorKind::kUsage,
          "{} sets a field that this version of the library does not know; use a newer library",
          name);
  T result{};
  std::memcpy(&result, given, std::min(given->size, sizeof(T)));
  return result;
}

// The same for an argument that may be missing: all defaults.
template <class T>
T read_optional(const T* given, const char* name) {
  return given ? read_struct(given, name) : T{};
}

// As much of `value` as the caller's struct has room for; its size stays. Whatever else it has
// becomes zero.
template <class T>
void write_struct(T* to, T value, const char* name) {
  check(to != nullptr, ErrorKind::kUsage, "{} is NULL", name);
  check(to->size >= sizeof(std::size_t) && to->size <= 4096, ErrorKind::kUsage,
        "{}: its size is {}; set it to the sizeof of the struct", name, to->size);
  const std::size_t size = to->size, known = std::min(size, sizeof(T));
  value.size = size;
  std::memcpy(to, &value, known);
  std::memset(reinterpret_cast<unsigned char*>(to) + known, 0, size - known);
}

// A map into a buffer of the caller's, whose rows are `stride` bytes apart (0: no gaps).
template <class T>
void copy_map(const Map<T>& map, T* to, std::ptrdiff_t stride, const char* name) {
  if (!to) return;
  check(!map.empty(), ErrorKind::kUsage, "the result has no {}", name);
  const std::size_t row = static_cast<std::size_t>(map.width()) * sizeof(T);
  const auto step = stride != 0 ? stride : static_cast<std::ptrdiff_t>(row);
  check(static_cast<std::size_t>(step < 0 ? -step : step) >= row, ErrorKind::kUsage,
        "the {} rows of the buffer are {} bytes apart; {} are needed", name, stride, row);
  for (int y = 0; y < map.height(); ++y)
    std::memcpy(reinterpret_cast<std::byte*>(to) + y * step, map.row(y), row);
}

inline Alignment alignment_of(const nmrf_alignment& a) {
  return {a.offset, a.turn, a.scale, a.keystone};
}

inline ImageView view_of(const nmrf_image* image, const char* name) {
  const nmrf_image i = read_struct(image, name);
  check(i.order == NMRF_RGB || i.order == NMRF_BGR, ErrorKind::kUsage,
        "{}: its order is {}; expected NMRF_RGB or NMRF_BGR", name, i.order);
  return {i.data,
          i.width,
          i.height,
          i.stride,
          i.channels != 0 ? i.channels : 3,
          i.bits != 0 ? i.bits : 8,
          i.order == NMRF_RGB ? ChannelOrder::kRgb : ChannelOrder::kBgr};
}

}  // namespace nmrf::capi
