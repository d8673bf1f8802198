#include "weights/safetensors.h"

#include "fuzz/fuzz.h"

NMRF_FUZZ_TARGET({
  const nmrf::TensorFile file = nmrf::read_safetensors({"made.safetensors", input, nullptr});
  for (const auto& tensor : file.tensors)
    if (nmrf::is_floating(tensor.dtype)) nmrf::to_floats(tensor);
})
