// What the fuzz targets share: one input as a file, and the promises that every parser keeps.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>

namespace nmrf::fuzz {

using Bytes = std::span<const std::uint8_t>;

// The input as a file in memory, one of two; the path is good until the next call for the same.
const std::filesystem::path& as_file(Bytes input, std::size_t which = 0);

inline std::string_view as_text(Bytes input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}

// Runs a parser on one input. It may return or throw nmrf::Error of kind kInput, kModel, kDevice or
// kUsage with a message; anything else aborts. So does an input that takes more than a second of
// processor time, or more than 100 MB, for each kilobyte begun.
void parse(Bytes input, const std::function<void()>& parser);

}  // namespace nmrf::fuzz

// The body of a target: `input` is nmrf::fuzz::Bytes.
#define NMRF_FUZZ_TARGET(...)                                                         \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);  \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) { \
    const nmrf::fuzz::Bytes input(data, size);                                        \
    nmrf::fuzz::parse(input, [&] __VA_ARGS__);                                        \
    return 0;                                                                         \
  }
