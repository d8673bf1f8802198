// The threads of libtorch.
#pragma once

namespace nmrf::train {

// Sets the threads of libtorch and of the BLAS under it, for the whole process. count: at least 1.
void set_threads(int count);

// Warns when that BLAS is the reference implementation, about 25 times slower than it need be.
void warn_of_slow_blas();

}  // namespace nmrf::train
