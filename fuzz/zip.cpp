#include "weights/zip.h"

#include "fuzz/fuzz.h"

NMRF_FUZZ_TARGET({
  const nmrf::ZipReader zip({"made.zip", input, nullptr});
  for (const auto& entry : zip.entries()) zip.read(entry);
})
