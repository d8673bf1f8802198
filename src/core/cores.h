// The cores of this process.
#pragma once

namespace nmrf {

// Those it may run on: fewer than the machine's in a container or under taskset. At least 1.
int usable_cores();

}  // namespace nmrf
