// Reads the weights in a file that PyTorch's torch.save wrote, without running anything in it.
#pragma once

#include "weights/tensor_file.h"

namespace nmrf {

// The tensors of a state dict, in its order. The file holds the state dict itself, or a dict with
// it under 'model' or 'state_dict'; whatever else is there (optimiser, step) is listed in
// `skipped`. A `module.` that all names start with (DistributedDataParallel) is taken off. A
// contiguous tensor points into the file; one with other strides is copied into row-major order.
//
// Refused with an Error of kind kModel: a pickle that names anything but what a state dict needs,
// files of PyTorch before 1.6, TorchScript archives, big-endian files, tensors that reach beyond
// their storage, and broken archives.
TensorFile read_pth(const FileBytes& file);

}  // namespace nmrf
