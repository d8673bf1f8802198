// A file of settings, read and written again.
#include "io/toml.h"

#include "fuzz/fuzz.h"

NMRF_FUZZ_TARGET({
  const nlohmann::json settings = nmrf::read_toml(nmrf::fuzz::as_file(input).string());
  if (settings.is_object()) nmrf::to_toml(settings);
})
