#include "io/npy.h"

#include "fuzz/fuzz.h"

NMRF_FUZZ_TARGET({ nmrf::read_npy(nmrf::fuzz::as_file(input)); })
