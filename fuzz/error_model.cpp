// The error model in the metadata of a model file.
#include "matching/error_model.h"

#include <map>
#include <string>

#include "fuzz/fuzz.h"

NMRF_FUZZ_TARGET({
  nmrf::error_model_of({{nmrf::kErrorModelKey, std::string(nmrf::fuzz::as_text(input))}}, "made");
})
