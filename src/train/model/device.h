// Choosing where tensors live.
#pragma once

#include <torch/torch.h>

#include <string>

namespace nmrf::train {

// "auto" takes a GPU when this libtorch has one; "cpu", "cuda", "cuda:1". Where the number is left
// out, LOCAL_RANK in the environment chooses among the GPUs, so that each of several processes on a
// machine has its own; without it the first is taken. Throws Error(kUsage) for another word,
// Error(kDevice) when there is no such device. Logs what was chosen and why.
torch::Device choose_device(const std::string& wish);

}  // namespace nmrf::train
