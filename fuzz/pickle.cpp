#include "weights/pickle.h"

#include "fuzz/fuzz.h"

NMRF_FUZZ_TARGET({ nmrf::pickle::read(input, "made.pkl"); })
