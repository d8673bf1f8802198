// Counts what is allocated with operator new, on all threads. Linked into the tests of this folder.
#pragma once

#include <cstddef>

namespace nmrf::test {

// Calls of operator new since the start.
std::size_t allocations();

}  // namespace nmrf::test
