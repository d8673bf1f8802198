// The model options in the metadata of a weight file, and the network that they describe.
#include <string>

#include "fuzz/fuzz.h"
#include "network/model_file.h"
#include "network/parameters.h"

NMRF_FUZZ_TARGET({
  nmrf::TensorFile file;
  file.metadata["options"] = std::string(nmrf::fuzz::as_text(input));
  const nmrf::ModelOptions options = nmrf::options_of(file, "made.safetensors");
  nmrf::check_weights(options, file, "made.safetensors");
})
