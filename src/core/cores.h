// The cores of this process.
#pragma once

#include <cstdint>
#include <optional>

namespace nmrf {

// Those it may run on: fewer than the machine's in a container or under taskset. At least 1.
int usable_cores();

// Bytes that programs can still get without pushing others out; nothing where it is not known.
std::optional<std::uint64_t> free_memory();

}  // namespace nmrf
