#include "fuzz/fuzz.h"
#include "io/list_file.h"

NMRF_FUZZ_TARGET({ nmrf::read_list(nmrf::fuzz::as_file(input)); })
