// A whole checkpoint of PyTorch: an archive with a pickle and storages in it.
#include "weights/pth.h"

#include "fuzz/fuzz.h"

NMRF_FUZZ_TARGET({
  const nmrf::TensorFile file = nmrf::read_pth({"made.pth", input, nullptr});
  for (const auto& tensor : file.tensors)
    if (nmrf::is_floating(tensor.dtype)) nmrf::to_floats(tensor);
})
