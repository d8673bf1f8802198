#include "io/pfm.h"

#include "fuzz/fuzz.h"

NMRF_FUZZ_TARGET({ nmrf::read_pfm(nmrf::fuzz::as_file(input)); })
